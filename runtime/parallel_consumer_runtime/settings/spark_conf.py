"""Which Spark properties a user may not set, and what to do instead."""

MANAGED_SPARK_KEYS: dict[str, str] = {
    "spark.master": "executors run on this cluster; for none, set executor.instances to 0",
    "spark.submit.deployMode": "the driver has a pod of its own",
    "spark.submit.pyFiles": "set pyFiles",
    "spark.driver.host": "it is the driver pod's address",
    "spark.driver.port": "it is 7078, which the Service names",
    "spark.driver.bindAddress": "it is the driver pod's address",
    "spark.driver.blockManager.port": "it is 7079, which the Service names",
    "spark.ui.port": "it is 4040, which the Service names",
    "spark.driver.cores": "set driver.cores",
    "spark.driver.memory": "set driver.memory",
    "spark.driver.memoryOverhead": "set driver.memoryOverhead",
    "spark.driver.memoryOverheadFactor": "set driver.memoryOverhead",
    "spark.executor.instances": "set executor.instances",
    "spark.executor.cores": "set executor.cores",
    "spark.executor.memory": "set executor.memory",
    "spark.executor.memoryOverhead": "set executor.memoryOverhead",
    "spark.executor.memoryOverheadFactor": "set executor.memoryOverhead",
    "spark.kubernetes.memoryOverheadFactor": "set driver.memoryOverhead and executor.memoryOverhead",
    "spark.kubernetes.driver.request.cores": "set driver.coreRequest",
    "spark.kubernetes.driver.limit.cores": "set driver.coreLimit",
    "spark.kubernetes.executor.request.cores": "set executor.coreRequest",
    "spark.kubernetes.executor.limit.cores": "set executor.coreLimit",
    "spark.dynamicAllocation.enabled": "set dynamicAllocation.enabled",
    "spark.dynamicAllocation.initialExecutors": "set dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.minExecutors": "set dynamicAllocation.minExecutors",
    "spark.dynamicAllocation.maxExecutors": "set dynamicAllocation.maxExecutors",
    "spark.kubernetes.namespace": "executors run in the SparkJob's namespace",
    "spark.kubernetes.container.image": "set image",
    "spark.kubernetes.driver.container.image": "set image",
    "spark.kubernetes.executor.container.image": "set image",
    "spark.kubernetes.container.image.pullPolicy": "set imagePullPolicy",
    "spark.kubernetes.driver.pod.name": "it is the driver pod's name",
    "spark.kubernetes.executor.podNamePrefix": "it carries the attempt",
    "spark.kubernetes.driver.podTemplateFile": "set driver.template",
    "spark.kubernetes.driver.podTemplateContainerName": "set driver.template",
    "spark.kubernetes.executor.podTemplateFile": "set executor.template",
    "spark.kubernetes.executor.podTemplateContainerName": "set executor.template",
}
"""Keys the operator owns: each with what to do instead."""

FORBIDDEN_SPARK_KEYS: dict[str, str] = {
    "spark.authenticate.secret": "secrets are not written into manifests",
    "spark.ssl.keyPassword": "secrets are not written into manifests",
    "spark.ssl.keyStorePassword": "secrets are not written into manifests",
    "spark.ssl.trustStorePassword": "secrets are not written into manifests",
    "spark.hadoop.fs.s3a.access.key": "secrets are not written into manifests; take AWS_ACCESS_KEY_ID from a Secret in env",
    "spark.hadoop.fs.s3a.secret.key": "secrets are not written into manifests; take AWS_SECRET_ACCESS_KEY from a Secret in env",
    "spark.hadoop.fs.s3a.session.token": "secrets are not written into manifests; take AWS_SESSION_TOKEN from a Secret in env",
}
"""Keys that carry secrets."""

REFUSED_SPARK_PREFIXES: dict[str, str] = {
    "spark.kubernetes.authenticate.": "it gives the pods another identity",
    "spark.kubernetes.driver.volumes.hostPath.": "it reaches into the node",
    "spark.kubernetes.executor.volumes.hostPath.": "it reaches into the node",
    "spark.kubernetes.executor.label.parallelconsumer.io/": "such labels are the operator's own",
    "spark.kubernetes.executor.label.app.kubernetes.io/": "such labels are the operator's own",
    "spark.executorEnv.PARALLEL_CONSUMER_": "such variables are set by the operator",
}
"""Beginnings of keys that are refused, each with the reason."""


def refusal_of(key: str) -> str | None:
    """Return why a user may not set a Spark property, None when they may."""
    if not key.startswith("spark."):
        return f"'{key}' is no Spark property: write spark.hadoop.{key} for one of Hadoop's, or remove it"
    if key in MANAGED_SPARK_KEYS:
        return f"'{key}' is managed: {MANAGED_SPARK_KEYS[key]}"
    if key in FORBIDDEN_SPARK_KEYS:
        return f"'{key}' is refused: {FORBIDDEN_SPARK_KEYS[key]}"
    for prefix, reason in REFUSED_SPARK_PREFIXES.items():
        if key.startswith(prefix):
            return f"'{prefix}*' is refused: {reason}"
    return None
