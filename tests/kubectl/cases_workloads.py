"""Cases about what controllers and nodes work on: deployments, jobs, sets, pods and nodes."""

from __future__ import annotations

from tests.kubectl.steps import Case, eventually, run

__all__ = ("CASES",)

_DEPLOYMENTS = Case(
    "deployments",
    (
        run("create deployment web --image=nginx:1 --replicas=2 --port=80"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("wait --for=condition=Available deployment/web --timeout=50s"),
        run("wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout=50s"),
        eventually("get deployment web"),
        eventually("get deployment web -o wide"),
        eventually("get deployment web -o yaml"),
        eventually("get rs -o wide"),
        eventually("get rs -o yaml"),
        eventually("get pods -o wide --show-labels"),
        eventually("get pods -o yaml"),
        eventually("describe deployment web"),
        eventually("describe rs -l app=web"),
        eventually("describe pods -l app=web"),
        run("expose deployment web --port=8080 --target-port=80"),
        eventually("get svc web -o yaml"),
        eventually("get endpoints web -o yaml"),
        eventually("get endpointslices -o yaml"),
        eventually("describe svc web"),
        eventually("get all"),
        run("scale deployment web --replicas=3"),
        run("scale deployment web --replicas=1 --current-replicas=7", fails=True),
        run("wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web --timeout=50s"),
        run("set image deployment/web nginx=nginx:2"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("set env deployment/web COLOUR=red"),
        run("set env deployment/web --list"),
        # Each rollout to its end: how far one came before the next is chance, and told by events and revisions.
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("set resources deployment/web --limits=cpu=200m,memory=128Mi --requests=cpu=100m"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("set serviceaccount deployment/web default"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        eventually("rollout history deployment/web"),
        run("rollout history deployment/web --revision=2"),
        run("annotate deployment/web kubernetes.io/change-cause=again"),
        eventually("rollout history deployment/web", until="again"),
        run("rollout undo deployment/web --to-revision=1"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("rollout undo deployment/web --to-revision=99", fails=True),
        run("rollout restart deployment/web"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("rollout pause deployment/web"),
        run("rollout pause deployment/web", fails=True),
        run("rollout restart deployment/web", fails=True),
        run("rollout resume deployment/web"),
        run("autoscale deployment web --min=2 --max=5 --cpu=80%"),
        eventually("get hpa"),
        eventually("get hpa web -o yaml"),
        eventually(
            "get rs -o custom-columns=R:.spec.replicas,I:.spec.template.spec.containers[0].image", unordered=True
        ),
        eventually(
            "get deployment web -o jsonpath='{.status}'", hide=(('"observedGeneration":[0-9]+', "<generation>"),)
        ),
        eventually("events --for deployment/web", unordered=True, hide=((r"^.*combined from similar.*\n", ""),)),
        run("delete hpa web"),
        run('patch deployment web --subresource=scale --type=merge -p \'{"spec":{"replicas":1}}\''),
        eventually("get deployment web --subresource=scale -o yaml"),
        run(
            'patch deployment web --type=merge -p \'{"spec":{"selector":{"matchLabels":{"app":"other"}}}}\'', fails=True
        ),
        run("scale deployment missing --replicas=1", fails=True),
        run("delete deployment web --cascade=foreground"),
        eventually("get deployment,rs,pods"),
        run("delete svc web"),
        eventually("get all"),
    ),
)

_CASCADES = Case(
    "cascades",
    (
        run("create deployment web --image=nginx --replicas=1"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("delete deployment web --cascade=orphan"),
        eventually("get rs -o jsonpath='{.items[*].metadata.ownerReferences}'"),
        eventually("get rs,pods", until="Running"),
        run("delete rs -l app=web --cascade=background"),
        eventually("get rs,pods"),
        run("create deployment web --image=nginx --replicas=1"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("delete deployment web --cascade=foreground --timeout=50s"),
        eventually("get rs"),  # a controller that has not heard of the deletion may have made a last one
        run("create deployment web --image=nginx --replicas=1"),
        run("delete deployment --all --wait=false"),
        eventually("wait --for=delete deployment/web --timeout=50s"),
        eventually("get all"),
    ),
)

_JOBS = Case(
    "jobs",
    (
        run("create job once --image=busybox -- echo hello"),
        run("wait --for=condition=Complete job/once --timeout=50s"),
        eventually("get job once"),
        eventually("get job once -o wide"),
        eventually("get job once -o yaml"),
        eventually("get pods --show-labels"),
        eventually("describe job once"),
        eventually("logs job/once"),
        run("create cronjob often --image=busybox --schedule='0 0 1 1 *' -- echo hello"),
        run("create job by-hand --from=cronjob/often"),
        run("wait --for=condition=Complete job/by-hand --timeout=50s"),
        eventually("get cronjob often -o yaml"),
        eventually("describe cronjob often"),
        eventually("get job by-hand -o yaml"),
        run("create job failing --image=busybox --dry-run=client -o yaml -- sh -c 'exit 3'"),
        run("delete job once"),
        eventually("get jobs,cronjobs,pods"),
        run("delete cronjob often"),
    ),
)

_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: full, labels: {app: full}}
spec:
  initContainers:
  - {name: before, image: busybox, command: [sh, -c, "true"]}
  containers:
  - name: one
    image: nginx
    ports: [{containerPort: 80, name: http}]
    env:
    - {name: A, value: b}
    - {name: P, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: S, valueFrom: {configMapKeyRef: {name: none, key: k, optional: true}}}
    readinessProbe: {httpGet: {path: /, port: http}}
    volumeMounts: [{name: data, mountPath: /data}]
  - {name: two, image: redis, resources: {limits: {cpu: 100m, memory: 64Mi}}}
  volumes: [{name: data, emptyDir: {}}]
"""

_PODS = Case(
    "pods",
    (
        run("run solo --image=nginx --labels=app=solo --port=80 --env=A=b"),
        run("wait --for=condition=Ready pod/solo --timeout=50s"),
        eventually("get pod solo"),
        eventually("get pod solo -o wide"),
        eventually("get pod solo -o yaml"),
        eventually("describe pod solo"),
        eventually("get events --field-selector involvedObject.name=solo", unordered=True),
        eventually("events --for pod/solo", unordered=True),
        eventually("get events -o custom-columns=R:.reason,M:.message,S:.source.component,T:.type", unordered=True),
        run("logs solo"),
        run("logs solo -c wrong", fails=True),
        run("logs missing", fails=True),
        run("apply -f -", stdin=_POD),
        run("wait --for=condition=Ready pod/full --timeout=50s"),
        eventually("get pod full -o yaml"),
        eventually("describe pod full"),
        run("logs full"),
        run("logs full --all-containers", unordered=True),
        run("logs -l app=full -c before"),
        run("expose pod solo --port=80 --name=solo-svc --type=NodePort"),
        eventually("get svc solo-svc"),
        eventually("describe svc solo-svc"),
        run("label pod solo tier=x"),
        run("set image pod/solo solo=nginx:2"),
        run('patch pod solo -p \'{"spec":{"hostNetwork":true}}\'', fails=True),
        run("run once --image=busybox --restart=Never --command -- echo hi"),
        run("wait --for=jsonpath='{.status.phase}'=Succeeded pod/once --timeout=50s"),
        eventually("get pod once"),
        eventually("describe pod once"),
        run('run picky --image=nginx --overrides=\'{"spec":{"nodeSelector":{"disk":"none"}}}\''),
        eventually("get pod picky -o wide"),
        eventually("describe pod picky", until="FailedScheduling"),
        run("top pods", fails=True),
        run("run --image=nginx bad_name", fails=True),
        run("wait --for=condition=Ready pod/missing --timeout=1s", fails=True),
        run("delete pod solo --grace-period=0 --force"),
        run("delete pod full --now"),
        run("delete pods --all"),
        eventually("get pods"),
    ),
)

_SETS = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: "postgres:1"}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: "agent:1"}]
"""

_SET_CHAPTER = Case(
    "sets",
    (
        run("apply -f sets.yaml"),
        run("rollout status statefulset/db --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("rollout status daemonset/agent --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        eventually("get sts,ds -o wide"),
        eventually("get sts db -o yaml"),
        eventually("get ds agent -o yaml"),
        eventually("get pods -o wide --sort-by=.metadata.name"),
        eventually("get pod db-0 -o yaml"),
        eventually("get controllerrevisions"),
        eventually("describe sts db"),
        eventually("describe ds agent"),
        run("set image sts/db db=postgres:2"),
        run("set image ds/agent agent=agent:2"),
        run("rollout status statefulset/db --timeout=50s", hide=((r"^(Waiting|waiting|partitioned).*\n", ""),)),
        run("rollout status daemonset/agent --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        eventually("rollout history sts/db"),
        eventually("rollout history ds/agent"),
        run("rollout undo sts/db"),
        run("rollout undo ds/agent"),
        run("rollout status statefulset/db --timeout=50s", hide=((r"^(Waiting|waiting|partitioned).*\n", ""),)),
        run("rollout restart ds/agent"),
        run("rollout history ds/agent --revision=2"),
        run("scale sts db --replicas=1"),
        eventually("get pods -l app=db", until="db-0"),
        run("delete pod db-0"),
        eventually("get pods -l app=db", until="Running"),
        run("delete -f sets.yaml"),
        eventually("get all"),
    ),
    {"sets.yaml": _SETS},
)

_NODE = "node-1"
# What depends on the program that serves, see docs/embedded.md.
_OF_NODES = (
    (r"(v1\.35\.4)\+kubewright", r"\1"),
    (r"Port: \d+", "Port: <port>"),
    (r"^  kube-system +kubewright-system .*\n", ""),
    (r"\(\d in total\)", "(<number> in total)"),
)
_NODES = Case(
    "nodes",
    (
        run("get nodes", hide=_OF_NODES),
        eventually("get nodes -o wide", hide=_OF_NODES),
        eventually("get nodes -o yaml", hide=_OF_NODES),
        eventually("describe nodes", hide=_OF_NODES),
        run(f"cordon {_NODE}"),
        run(f"cordon {_NODE}"),
        eventually("get nodes", hide=_OF_NODES),
        run(f"uncordon {_NODE}"),
        run(f"taint nodes {_NODE} special=yes:NoSchedule"),
        run(f"taint nodes {_NODE} special=no:NoSchedule", fails=True),
        run("run kept-away --image=nginx"),
        eventually("describe pod kept-away", until="untolerated taint"),
        run(f"taint nodes {_NODE} special:NoSchedule-"),
        run("wait --for=condition=Ready pod/kept-away --timeout=50s"),
        run("create deployment web --image=nginx --replicas=1"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("create pdb web --selector=app=web --min-available=1"),
        run("wait --for=jsonpath='{.status.currentHealthy}'=1 pdb/web --timeout=50s"),
        eventually("get pdb web", until="web"),
        run(f"drain {_NODE} --pod-selector=run=kept-away", fails=True),
        run(f"drain {_NODE} --pod-selector=run=kept-away --force"),
        run(f"drain {_NODE} --pod-selector=app=web --timeout=3s", fails=True, unordered=True),
        run("delete pdb web"),
        run(f"drain {_NODE} --pod-selector=app=web", unordered=True),
        run(f"uncordon {_NODE}"),
        run("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        run("top nodes", fails=True),
        run(f"label node {_NODE} disk=ssd"),
        run(f"label node {_NODE} disk-"),
        run("delete deployment web"),
    ),
)

CASES = (_DEPLOYMENTS, _CASCADES, _JOBS, _PODS, _SET_CHAPTER, _NODES)
