"""Process 1 of a node's namespaces: starts every component, says when the node is ready, and reaps.

`python -m tests.support.cluster.node WORK`, inside fresh network, mount, pid, ipc and uts namespaces. Everything that a
component writes lies in WORK or on a file system that only these namespaces see, so that their end is the end of it all.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.cluster.binaries import PAUSE_IMAGE
from tests.support.cluster.prerequisites import CNI_FOLDER

ADDRESS = "10.88.0.1"
START_TIMEOUT_S = 120.0
# Folders of the machine that components write to whatever they are told: covered, so that nothing is left in them.
COVERED = ("/run/netns", "/run/containerd", "/var/lib/cni", "/var/log")


class Node:
    """The components of one node.

    Args:
        work: the run's own folder.
        programs: folders with the built programs, by component.
    """

    def __init__(self, work: Path, programs: dict[str, str]) -> None:
        self.work = work
        self.programs = programs
        self.pki = work / "pki"
        self.socket = work / "containerd.sock"
        self.cgroup = f"/{work.name}"

    def main(self) -> None:
        """Start everything, touch `ready`, and reap until the end."""
        self._mount()
        self._network()
        self._start("etcd", *self._etcd())
        self._start("apiserver", *self._apiserver())
        self._configure_containerd()
        self._start("containerd", "containerd", "-c", str(self.work / "containerd.toml"))
        self._wait("the API server answers", lambda: self._kubectl("get", "--raw", "/readyz"))
        user = {
            name: f"--kubeconfig={self.pki}/{name}.kubeconfig" for name in ("controller-manager", "scheduler", "proxy")
        }
        self._start(
            "controller-manager",
            self.programs["kube-controller-manager"],
            user["controller-manager"],
            f"--service-account-private-key-file={self.pki}/sa.key",
            f"--root-ca-file={self.pki}/ca.crt",
            "--use-service-account-credentials",
            "--leader-elect=false",
        )
        self._start("scheduler", self.programs["kube-scheduler"], user["scheduler"], "--leader-elect=false")
        self._wait("containerd answers", lambda: self._ctr("version"))
        self._wait("the pause image is there", lambda: self._ctr("images", "import", self.programs["pause"]))
        self._start("kubelet", *self._kubelet())
        self._start(
            "proxy",
            self.programs["kube-proxy"],
            user["proxy"],
            "--cluster-cidr=10.244.0.0/16",
            "--proxy-mode=iptables",
            "--hostname-override=node",
            "--conntrack-max-per-core=0",
        )
        self._start("coredns", *self._coredns())
        self._wait("the node is ready", self._node_ready)
        # Pods are refused until the controller made it.
        self._wait("the default service account is there", lambda: self._kubectl("get", "serviceaccount", "default"))
        (self.work / "ready").touch()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                signal.pause()

    def _mount(self) -> None:
        _run("mount", "--make-rprivate", "/")
        _run("mount", "-t", "proc", "proc", "/proc")
        _run("hostname", "node")
        for folder in COVERED:
            Path(folder).mkdir(parents=True, exist_ok=True)
            _run("mount", "-t", "tmpfs", "covered", folder)

    def _network(self) -> None:
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "node0", "type", "bridge")
        _run("ip", "addr", "add", f"{ADDRESS}/24", "dev", "node0")
        _run("ip", "link", "set", "node0", "up")
        _run("ip", "route", "add", "default", "via", "10.88.0.254", "dev", "node0")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")

    def _etcd(self) -> Sequence[str]:
        client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        return (
            self.programs["etcd"],
            f"--data-dir={self.work}/etcd",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _apiserver(self) -> Sequence[str]:
        pki = self.pki
        return (
            self.programs["kube-apiserver"],
            "--etcd-servers=http://127.0.0.1:2379",
            f"--advertise-address={ADDRESS}",
            "--secure-port=6443",
            f"--tls-cert-file={pki}/apiserver.crt",
            f"--tls-private-key-file={pki}/apiserver.key",
            f"--client-ca-file={pki}/ca.crt",
            f"--service-account-key-file={pki}/sa.pub",
            f"--service-account-signing-key-file={pki}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            f"--kubelet-client-certificate={pki}/apiserver-kubelet.crt",
            f"--kubelet-client-key={pki}/apiserver-kubelet.key",
            f"--kubelet-certificate-authority={pki}/ca.crt",
            # The node's name is in no DNS that the API server asks.
            "--kubelet-preferred-address-types=InternalIP",
            "--allow-privileged",
        )

    def _configure_containerd(self) -> None:
        network = {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "cni0",
                    "isGateway": True,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": "10.244.0.0/16"}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": f"{self.work}/ipam",
                    },
                }
            ],
        }
        conf = self.work / "cni"
        conf.mkdir()
        (conf / "10-bridge.conflist").write_text(json.dumps(network))
        cri = '[plugins."io.containerd.grpc.v1.cri"'
        (self.work / "containerd.toml").write_text(
            f"""version = 2
root = "{self.work}/containerd/root"
state = "{self.work}/containerd/state"
[grpc]
address = "{self.socket}"
{cri}]
sandbox_image = "{PAUSE_IMAGE}"
# Without CAP_SYS_RESOURCE a score may not be lowered, and every sandbox would fail.
restrict_oom_score_adj = true
{cri}.cni]
bin_dir = "{CNI_FOLDER}"
conf_dir = "{conf}"
"""
        )

    def _kubelet(self) -> Sequence[str]:
        (self.work / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "x509": {"clientCAFile": f"{self.pki}/ca.crt"},
                "webhook": {"enabled": True},
                "anonymous": {"enabled": False},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            # Two kubelets on one cgroup root would remove each other's pods.
            "cgroupRoot": self.cgroup,
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "localStorageCapacityIsolation": False,
            "clusterDNS": [ADDRESS],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "tlsCertFile": f"{self.pki}/kubelet.crt",
            "tlsPrivateKeyFile": f"{self.pki}/kubelet.key",
            "resolvConf": f"{self.work}/resolv.conf",
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        }
        path = self.work / "kubelet.json"
        path.write_text(json.dumps(config))
        return (
            self.programs["kubelet"],
            f"--config={path}",
            f"--kubeconfig={self.pki}/kubelet.kubeconfig",
            "--hostname-override=node",
            f"--node-ip={ADDRESS}",
            f"--root-dir={self.work}/kubelet",
        )

    def _coredns(self) -> Sequence[str]:
        corefile = self.work / "Corefile"
        corefile.write_text(
            f""".:53 {{
  bind {ADDRESS}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {self.pki}/admin.kubeconfig local
    pods insecure
  }}
  cache 5
}}
"""
        )
        return self.programs["coredns"], "-conf", str(corefile)

    def _node_ready(self) -> bool:
        path = "jsonpath={.status.conditions[?(@.type=='Ready')].status}"
        return self._kubectl("get", "node", "node", "-o", path, expect="True")

    def _kubectl(self, *arguments: str, expect: str = "") -> bool:
        return _succeeds("kubectl", f"--kubeconfig={self.pki}/admin.kubeconfig", *arguments, expect=expect)

    def _ctr(self, *arguments: str) -> bool:
        return _succeeds("ctr", "-a", str(self.socket), "-n", "k8s.io", *arguments)

    def _start(self, name: str, *command: str) -> None:
        with (self.work / "logs" / f"{name}.log").open("wb") as log:
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _wait(self, what: str, probe: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not probe():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {START_TIMEOUT_S:g} s: {what}")
            time.sleep(0.1)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=30, stdin=subprocess.DEVNULL)


def _succeeds(*command: str, expect: str = "") -> bool:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    return ran.returncode == 0 and expect in ran.stdout


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    try:
        Node(folder, json.loads((folder / "programs.json").read_text())).main()
    except BaseException:
        (folder / "failed").touch()
        raise
