"""Certificates and kubeconfigs of one cluster run, by openssl, valid for a day."""

import subprocess
from pathlib import Path

CLIENTS = {
    "admin": "/O=system:masters/CN=admin",
    "kubelet": "/O=system:nodes/CN=system:node:node",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "proxy": "/CN=system:kube-proxy",
}
_KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{{name: local, cluster: {{server: "https://{address}:6443", certificate-authority: {folder}/ca.crt}}}}]
users: [{{name: {user}, user: {{client-certificate: {folder}/{user}.crt, client-key: {folder}/{user}.key}}}}]
contexts: [{{name: local, context: {{cluster: local, user: {user}}}}}]
current-context: local
"""


def issue_all(folder: Path, address: str) -> None:
    """Fill the folder with a CA, the components' certificates, the service accounts' key, and kubeconfigs."""
    folder.mkdir(parents=True)
    _key(folder, "ca")
    _openssl(
        folder, "req", "-x509", "-new", "-key", "ca.key", "-days", "1", "-out", "ca.crt", "-subj", "/CN=cluster-ca"
    )
    _key(folder, "sa")
    _openssl(folder, "ec", "-in", "sa.key", "-pubout", "-out", "sa.pub")
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
    alternatives = [f"IP:{address}", "IP:127.0.0.1", "IP:10.96.0.1", *(f"DNS:{name}" for name in names)]
    _issue(folder, "apiserver", "/CN=kube-apiserver", f"subjectAltName={','.join(alternatives)}")
    _issue(folder, "apiserver-kubelet", "/O=system:masters/CN=apiserver-kubelet", "extendedKeyUsage=clientAuth")
    for user, subject in CLIENTS.items():
        server = f"\nsubjectAltName=IP:{address},DNS:node" if user == "kubelet" else ""
        usage = "extendedKeyUsage=clientAuth" + (",serverAuth" if server else "")
        _issue(folder, user, subject, usage + server)
        (folder / f"{user}.kubeconfig").write_text(_KUBECONFIG.format(address=address, folder=folder, user=user))


def _key(folder: Path, name: str) -> None:
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")


def _issue(folder: Path, name: str, subject: str, extensions: str) -> None:
    _key(folder, name)
    _openssl(folder, "req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
    (folder / f"{name}.ext").write_text(extensions + "\n")
    signing = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", f"{name}.ext"]
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signing, "-out", f"{name}.crt")


def _openssl(folder: Path, *arguments: str) -> None:
    ran = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, timeout=30, check=False)
    if ran.returncode:
        raise RuntimeError(f"openssl {arguments[0]} failed: {ran.stderr[-1000:]}")
