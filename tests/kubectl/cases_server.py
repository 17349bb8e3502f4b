"""Chapters about the server itself: what it serves, who may do what, kinds of one's own, namespaces."""

from __future__ import annotations

from tests.kubectl.steps import Chapter, ask, do

__all__ = ("CHAPTERS",)

# What depends on the program that serves, see docs/embedded.md.
_PORT = ((r'(targetPort: |"serverAddress":"<address>:)\d+', r"\1<port>"), (r"\d+/TCP", "<port>/TCP"))
_ELSEWHERE = "identity-lease|service-cidr-controller|reload-proxy-client-cert"
_HOOKS = ((rf"^.*poststarthook/.*({_ELSEWHERE}).*\n", ""),)
_VERSION = ((r"(v1\.35\.4)\+kubewright", r"\1"), (r"(compiler|gitCommit|goVersion): .*", r"\1: <build>"))

_DISCOVERY = Chapter(
    "discovery",
    (
        do("version", hide=_VERSION),
        do("version -o yaml", hide=_VERSION),
        do("cluster-info"),
        do("api-versions"),
        do("api-resources"),
        do("api-resources -o wide --sort-by=name"),
        do("api-resources --api-group=apps --namespaced=true -o name"),
        do("explain pods"),
        do("explain deployments.spec.strategy --recursive"),
        do("explain ingress.spec.rules.http.paths.pathType"),
        do("explain hpa --api-version=autoscaling/v2"),
        do("explain widgets", fails=True),
        do("explain pods.spec.wrong", fails=True),
        do("explain crd.spec.names"),
        do("explain deployment.spec.strategy --output=plaintext-openapiv2"),
        do("get --raw /", hide=_HOOKS),
        do("get --raw /api", hide=_PORT),
        do("get --raw /apis/apps"),
        do("get --raw /healthz"),
        do("get --raw '/readyz?verbose'", hide=_HOOKS),
        do("get --raw '/livez?verbose'", hide=_HOOKS),
        do("get --raw /nothing", fails=True),
        do("get --raw /api/v1/namespaces/chapter-discovery/configmaps/none", fails=True),
        do("get componentstatuses", exception="componentstatuses"),
        do("config current-context"),
        # What servers make at their start, and say of it, comes a moment later.
        ask("get apiservices"),
        ask("get priorityclasses"),
        ask("get flowschemas"),
        ask("get prioritylevelconfigurations"),
        ask("get clusterroles"),
        ask("get clusterrolebindings -o wide"),
        ask("get roles,rolebindings -A -o wide"),
        do("get namespaces default kube-system kube-public kube-node-lease --show-labels"),
        do("get svc kubernetes -n default -o yaml", hide=_PORT),
        ask("describe svc kubernetes -n default", hide=_PORT),
        do("get sa -n kube-system", exception="ServiceAccounts in `kube-system`"),
        ask("get cm -n kube-system"),
        ask("get leases -n kube-node-lease"),
        do("get runtimeclasses,storageclasses,ingressclasses,csidrivers,pv"),
        do("get servicecidrs"),
        do("get ipaddresses", hide=((r"^.*services/chapter-.*\n", ""),)),
        do("get validatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations"),
    ),
)

_RBAC = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: chapter-access}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: chapter-access}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}
"""

_ACCESS = Chapter(
    "access",
    (
        do("auth whoami"),
        do("auth whoami -o yaml"),
        do("auth whoami --as=alice --as-group=team"),
        do("auth can-i create pods"),
        do("auth can-i create pods --as=alice", fails=True),
        do("auth can-i --list --as=alice"),
        do("auth can-i '*' '*'"),
        do("auth can-i get /healthz --as=system:anonymous", fails=True),
        do("auth reconcile -f rbac.yaml"),
        do("auth reconcile -f rbac.yaml"),
        ask("auth can-i list configmaps --as=alice", until="yes"),  # servers hear of roles a moment later
        do("auth can-i get configmaps/one --as=alice"),
        do("auth can-i list configmaps --as=alice -A", fails=True),
        do("auth can-i --list --as=alice"),
        ask("get cm --as=alice", until="kube-root-ca.crt"),
        do("get secrets --as=alice", fails=True),
        do("create cm x --as=alice", fails=True),
        do("delete cm kube-root-ca.crt --as=alice", fails=True),
        do("get nodes --as=alice", fails=True),
        do("get --raw /metrics --as=alice", fails=True),
        do("describe role reader"),
        do("describe rolebinding reader"),
        do("describe clusterrole view"),
        do("create role escalate --verb=get --resource=secrets --as=alice", fails=True),
        do("create token default"),
        do("create token default --duration=1h --audience=me -o yaml"),
        do("create token missing", fails=True),
        do("create token default --duration=1s", fails=True),
        do("set subject rolebinding reader --user=bob"),
        do("get rolebinding reader -o wide"),
        do("delete -f rbac.yaml"),
    ),
    {"rbac.yaml": _RBAC},
)

_CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.kubectl.example.io}
spec:
  group: kubectl.example.io
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList, shortNames: [gd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.ready}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, description: How big it is.}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A gadget.
        properties:
          spec:
            type: object
            description: What is wished for.
            required: [size]
            properties:
              size: {type: integer, minimum: 0, maximum: 9, description: How big it is.}
              colour: {type: string, enum: [red, blue], default: red}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
            x-kubernetes-validations:
            - {rule: "self.size < 9 || self.colour == 'red'", message: nine is for red}
          status:
            type: object
            properties:
              ready: {type: integer}
"""
_GADGET = """\
apiVersion: kubectl.example.io/v1
kind: Gadget
metadata: {name: one}
spec: {size: 2}
"""

_CUSTOM = Chapter(
    "custom",
    (
        do("apply -f crd.yaml"),
        do("wait --for=condition=Established crd/gadgets.kubectl.example.io --timeout=50s"),
        do("get crd gadgets.kubectl.example.io"),
        do("get crd gadgets.kubectl.example.io -o yaml"),
        do("describe crd gadgets.kubectl.example.io"),
        ask("api-resources --api-group=kubectl.example.io -o wide", until="gadgets"),
        ask("explain gadgets", until="What is wished for"),
        do("explain gadget.spec --recursive"),
        do("get gadgets"),
        do("apply -f gadget.yaml"),
        do("apply -f gadget.yaml"),
        do("get gadgets"),
        do("get gd -o wide"),
        do("get gd one -o yaml"),
        do("get all"),
        do("describe gadget one"),
        do("apply -f -", stdin=_GADGET.replace("size: 2", "size: 12"), fails=True),
        do("apply -f -", stdin=_GADGET.replace("size: 2", "size: 9, colour: blue"), fails=True),
        do("apply -f -", stdin=_GADGET.replace("size: 2", "size: 2, colour: pink, tags: [a, a]"), fails=True),
        do("apply -f -", stdin=_GADGET.replace("size: 2", "size: 2, shape: round"), fails=True),
        do("apply -f -", stdin=_GADGET.replace("size: 2", ""), fails=True),
        do("apply -f - --validate=ignore", stdin=_GADGET.replace("size: 2", "size: 2, shape: round")),
        do('patch gadget one --type=merge -p \'{"spec":{"size":"three"}}\'', fails=True),
        do('patch gadget one -p \'{"spec":{"size":3}}\'', fails=True),
        do("scale gadget one --replicas=4"),
        do('patch gadget one --subresource=status --type=merge -p \'{"status":{"ready":4}}\''),
        do("get gadget one --subresource=scale -o yaml"),
        do("wait --for=jsonpath='{.status.ready}'=4 gadget/one --timeout=50s"),
        do("apply --server-side --field-manager=other -f -", stdin=_GADGET.replace("size: 2", "size: 7"), fails=True),
        do("label gadget one a=b"),
        do("get gadgets -l a=b -o name"),
        do("delete gadget one"),
        do("delete -f crd.yaml"),
        ask("get gadgets", fails=True),
    ),
    {"crd.yaml": _CRD, "gadget.yaml": _GADGET},
)

_FINAL = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: doomed, finalizers: [example.io/hold]}
"""

_NAMESPACES = Chapter(
    "namespaces",
    (
        do("create namespace doomed"),
        do("create namespace doomed", fails=True),
        do("wait --for=create serviceaccount/default -n doomed --timeout=50s"),
        do("create -n doomed -f -", stdin=_FINAL.replace(", finalizers: [example.io/hold]", "").replace("held", "a")),
        # The controller of namespaces waits for as long as its pods may take to end.
        do('run pod --image=nginx -n doomed --overrides=\'{"spec":{"terminationGracePeriodSeconds":1}}\''),
        do("wait --for=condition=Ready pod/pod -n doomed --timeout=50s"),
        do("create -n doomed -f -", stdin=_FINAL),
        do("delete namespace doomed --wait=false"),
        ask("get namespace doomed", until="Terminating"),
        do("create configmap late -n doomed", fails=True),
        ask("get namespace doomed -o yaml", until="SomeFinalizersRemain"),
        ask("describe namespace doomed"),
        do('patch cm held -n doomed --type=json -p \'[{"op":"remove","path":"/metadata/finalizers"}]\''),
        ask("wait --for=delete namespace/doomed --timeout=50s"),
        do("get namespace doomed", fails=True),
        do("create configmap x -n nowhere", fails=True),
        do("get pods -n nowhere"),
        do("delete namespace kube-system", fails=True),
    ),
)

_QUOTA = """\
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, default: {cpu: 100m}, defaultRequest: {cpu: 50m}, max: {cpu: "1"}}
"""

_GREEDY = '{"spec":{"containers":[{"name":"x","image":"nginx","resources":{"limits":{"cpu":"2"}}}]}}'

_LIMITS = Chapter(
    "limits",
    (
        do("create quota few --hard=configmaps=3,pods=1,services=0"),
        do("apply -f -", stdin=_QUOTA),
        do("describe limits limits"),
        ask("describe quota few", until="configmaps"),
        ask("get quota few", until="configmaps: 1/3"),
        # What a server lets through before it has heard of a quota is never counted.
        ask("create service clusterip none --tcp=80 --dry-run=server", until="exceeded quota", fails=True),
        do("create cm one"),
        do("create cm two"),
        ask("get quota few", until="configmaps: 3/3"),
        do("create cm three", fails=True),
        do("run first --image=nginx"),
        do("get pod first -o jsonpath='{.spec.containers[0].resources}'"),
        do("run second --image=nginx", fails=True),
        ask("describe quota few", until="pods"),
        do(
            f"run greedy --image=nginx --overrides='{_GREEDY}'",
            fails=True,
        ),
        ask("describe namespace chapter-limits"),
        do("create quota compute --hard=requests.cpu=1,limits.memory=1Gi"),
        do("delete pod first"),
        do("create deployment web --image=nginx"),
        ask("describe rs -l app=web", until="must specify limits.memory"),
        do("delete cm two"),
        ask("get quota", until="configmaps: 2/3"),
    ),
)

_ENFORCE = "pod-security.kubernetes.io/enforce"

_SECURITY = Chapter(
    "security",
    (
        do("run loose --image=nginx"),
        do(f"label namespace chapter-security {_ENFORCE}=strict", fails=True),
        do(f"label namespace chapter-security {_ENFORCE}=baseline"),
        # The real server knows of a pod, and of a label, a moment after it was written.
        do("wait --for=condition=Ready pod/loose --timeout=50s"),
        do(f"label namespace chapter-security {_ENFORCE}=restricted --overwrite"),
        ask("run tight --image=nginx --dry-run=server", fails=True),
        do("create deployment web --image=nginx"),
        do("scale deployment web --replicas=2"),
        do("set image deployment web nginx=nginx:2"),
        do("get namespace chapter-security --show-labels"),
        do(f"label namespace chapter-security {_ENFORCE}-"),
        ask("run tight --image=nginx --dry-run=server", until="created"),
    ),
)

CHAPTERS = (_DISCOVERY, _ACCESS, _CUSTOM, _NAMESPACES, _LIMITS, _SECURITY)
