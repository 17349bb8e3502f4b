"""Chapters about what controllers and nodes work on: deployments, jobs, sets, pods and nodes."""

from __future__ import annotations

from tests.kubectl.steps import Chapter, ask, do

__all__ = ("CHAPTERS",)

_DEPLOYMENTS = Chapter(
    "deployments",
    (
        do("create deployment web --image=nginx:1 --replicas=2 --port=80"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("wait --for=condition=Available deployment/web --timeout=50s"),
        do("wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout=50s"),
        ask("get deployment web"),
        ask("get deployment web -o wide"),
        ask("get deployment web -o yaml"),
        ask("get rs -o wide"),
        ask("get rs -o yaml"),
        ask("get pods -o wide --show-labels"),
        ask("get pods -o yaml"),
        ask("describe deployment web"),
        ask("describe rs -l app=web"),
        ask("describe pods -l app=web"),
        do("expose deployment web --port=8080 --target-port=80"),
        ask("get svc web -o yaml"),
        ask("get endpoints web -o yaml"),
        ask("get endpointslices -o yaml"),
        ask("describe svc web"),
        ask("get all"),
        do("scale deployment web --replicas=3"),
        do("scale deployment web --replicas=1 --current-replicas=7", fails=True),
        do("wait --for=jsonpath='{.status.readyReplicas}'=3 deployment/web --timeout=50s"),
        do("set image deployment/web nginx=nginx:2"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("set env deployment/web COLOUR=red"),
        do("set env deployment/web --list"),
        # Each rollout to its end: how far one came before the next is chance, and told by events and revisions.
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("set resources deployment/web --limits=cpu=200m,memory=128Mi --requests=cpu=100m"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("set serviceaccount deployment/web default"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        ask("rollout history deployment/web"),
        do("rollout history deployment/web --revision=2"),
        do("annotate deployment/web kubernetes.io/change-cause=again"),
        ask("rollout history deployment/web", until="again"),
        do("rollout undo deployment/web --to-revision=1"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("rollout undo deployment/web --to-revision=99", fails=True),
        do("rollout restart deployment/web"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("rollout pause deployment/web"),
        do("rollout pause deployment/web", fails=True),
        do("rollout restart deployment/web", fails=True),
        do("rollout resume deployment/web"),
        do("autoscale deployment web --min=2 --max=5 --cpu=80%"),
        ask("get hpa"),
        ask("get hpa web -o yaml"),
        ask("get rs -o custom-columns=R:.spec.replicas,I:.spec.template.spec.containers[0].image", unordered=True),
        ask("get deployment web -o jsonpath='{.status}'", hide=(('"observedGeneration":[0-9]+', "<generation>"),)),
        ask("events --for deployment/web", unordered=True, hide=((r"^.*combined from similar.*\n", ""),)),
        do("delete hpa web"),
        do('patch deployment web --subresource=scale --type=merge -p \'{"spec":{"replicas":1}}\''),
        ask("get deployment web --subresource=scale -o yaml"),
        do(
            'patch deployment web --type=merge -p \'{"spec":{"selector":{"matchLabels":{"app":"other"}}}}\'', fails=True
        ),
        do("scale deployment missing --replicas=1", fails=True),
        do("delete deployment web --cascade=foreground"),
        ask("get deployment,rs,pods"),
        do("delete svc web"),
        ask("get all"),
    ),
)

_CASCADES = Chapter(
    "cascades",
    (
        do("create deployment web --image=nginx --replicas=1"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("delete deployment web --cascade=orphan"),
        ask("get rs -o jsonpath='{.items[*].metadata.ownerReferences}'"),
        ask("get rs,pods", until="Running"),
        do("delete rs -l app=web --cascade=background"),
        ask("get rs,pods"),
        do("create deployment web --image=nginx --replicas=1"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("delete deployment web --cascade=foreground --timeout=50s"),
        ask("get rs"),  # a controller that has not heard of the deletion may have made a last one
        do("create deployment web --image=nginx --replicas=1"),
        do("delete deployment --all --wait=false"),
        ask("wait --for=delete deployment/web --timeout=50s"),
        ask("get all"),
    ),
)

_JOBS = Chapter(
    "jobs",
    (
        do("create job once --image=busybox -- echo hello"),
        do("wait --for=condition=Complete job/once --timeout=50s"),
        ask("get job once"),
        ask("get job once -o wide"),
        ask("get job once -o yaml"),
        ask("get pods --show-labels"),
        ask("describe job once"),
        ask("logs job/once"),
        do("create cronjob often --image=busybox --schedule='0 0 1 1 *' -- echo hello"),
        do("create job by-hand --from=cronjob/often"),
        do("wait --for=condition=Complete job/by-hand --timeout=50s"),
        ask("get cronjob often -o yaml"),
        ask("describe cronjob often"),
        ask("get job by-hand -o yaml"),
        do("create job failing --image=busybox --dry-run=client -o yaml -- sh -c 'exit 3'"),
        do("delete job once"),
        ask("get jobs,cronjobs,pods"),
        do("delete cronjob often"),
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

_PODS = Chapter(
    "pods",
    (
        do("run solo --image=nginx --labels=app=solo --port=80 --env=A=b"),
        do("wait --for=condition=Ready pod/solo --timeout=50s"),
        ask("get pod solo"),
        ask("get pod solo -o wide"),
        ask("get pod solo -o yaml"),
        ask("describe pod solo"),
        ask("get events --field-selector involvedObject.name=solo", unordered=True),
        ask("events --for pod/solo", unordered=True),
        ask("get events -o custom-columns=R:.reason,M:.message,S:.source.component,T:.type", unordered=True),
        do("logs solo"),
        do("logs solo -c wrong", fails=True),
        do("logs missing", fails=True),
        do("apply -f -", stdin=_POD),
        do("wait --for=condition=Ready pod/full --timeout=50s"),
        ask("get pod full -o yaml"),
        ask("describe pod full"),
        do("logs full"),
        do("logs full --all-containers", unordered=True),
        do("logs -l app=full -c before"),
        do("expose pod solo --port=80 --name=solo-svc --type=NodePort"),
        ask("get svc solo-svc"),
        ask("describe svc solo-svc"),
        do("label pod solo tier=x"),
        do("set image pod/solo solo=nginx:2"),
        do('patch pod solo -p \'{"spec":{"hostNetwork":true}}\'', fails=True),
        do("run once --image=busybox --restart=Never --command -- echo hi"),
        do("wait --for=jsonpath='{.status.phase}'=Succeeded pod/once --timeout=50s"),
        ask("get pod once"),
        ask("describe pod once"),
        do('run picky --image=nginx --overrides=\'{"spec":{"nodeSelector":{"disk":"none"}}}\''),
        ask("get pod picky -o wide"),
        ask("describe pod picky", until="FailedScheduling"),
        do("top pods", fails=True),
        do("run --image=nginx bad_name", fails=True),
        do("wait --for=condition=Ready pod/missing --timeout=1s", fails=True),
        do("delete pod solo --grace-period=0 --force"),
        do("delete pod full --now"),
        do("delete pods --all"),
        ask("get pods"),
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

_SET_CHAPTER = Chapter(
    "sets",
    (
        do("apply -f sets.yaml"),
        do("rollout status statefulset/db --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("rollout status daemonset/agent --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        ask("get sts,ds -o wide"),
        ask("get sts db -o yaml"),
        ask("get ds agent -o yaml"),
        ask("get pods -o wide --sort-by=.metadata.name"),
        ask("get pod db-0 -o yaml"),
        ask("get controllerrevisions"),
        ask("describe sts db"),
        ask("describe ds agent"),
        do("set image sts/db db=postgres:2"),
        do("set image ds/agent agent=agent:2"),
        do("rollout status statefulset/db --timeout=50s", hide=((r"^(Waiting|waiting|partitioned).*\n", ""),)),
        do("rollout status daemonset/agent --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        ask("rollout history sts/db"),
        ask("rollout history ds/agent"),
        do("rollout undo sts/db"),
        do("rollout undo ds/agent"),
        do("rollout status statefulset/db --timeout=50s", hide=((r"^(Waiting|waiting|partitioned).*\n", ""),)),
        do("rollout restart ds/agent"),
        do("rollout history ds/agent --revision=2"),
        do("scale sts db --replicas=1"),
        ask("get pods -l app=db", until="db-0"),
        do("delete pod db-0"),
        ask("get pods -l app=db", until="Running"),
        do("delete -f sets.yaml"),
        ask("get all"),
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
_NODES = Chapter(
    "nodes",
    (
        do("get nodes", hide=_OF_NODES),
        ask("get nodes -o wide", hide=_OF_NODES),
        ask("get nodes -o yaml", hide=_OF_NODES),
        ask("describe nodes", hide=_OF_NODES),
        do(f"cordon {_NODE}"),
        do(f"cordon {_NODE}"),
        ask("get nodes", hide=_OF_NODES),
        do(f"uncordon {_NODE}"),
        do(f"taint nodes {_NODE} special=yes:NoSchedule"),
        do(f"taint nodes {_NODE} special=no:NoSchedule", fails=True),
        do("run kept-away --image=nginx"),
        ask("describe pod kept-away", until="untolerated taint"),
        do(f"taint nodes {_NODE} special:NoSchedule-"),
        do("wait --for=condition=Ready pod/kept-away --timeout=50s"),
        do("create deployment web --image=nginx --replicas=1"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("create pdb web --selector=app=web --min-available=1"),
        do("wait --for=jsonpath='{.status.currentHealthy}'=1 pdb/web --timeout=50s"),
        ask("get pdb web", until="web"),
        do(f"drain {_NODE} --pod-selector=run=kept-away", fails=True),
        do(f"drain {_NODE} --pod-selector=run=kept-away --force"),
        do(f"drain {_NODE} --pod-selector=app=web --timeout=3s", fails=True, unordered=True),
        do("delete pdb web"),
        do(f"drain {_NODE} --pod-selector=app=web", unordered=True),
        do(f"uncordon {_NODE}"),
        do("rollout status deployment/web --timeout=50s", hide=((r"^Waiting.*\n", ""),)),
        do("top nodes", fails=True),
        do(f"label node {_NODE} disk=ssd"),
        do(f"label node {_NODE} disk-"),
        do("delete deployment web"),
    ),
)

CHAPTERS = (_DEPLOYMENTS, _CASCADES, _JOBS, _PODS, _SET_CHAPTER, _NODES)
