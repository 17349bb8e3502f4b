"""Cases about the server itself: what it serves, who may do what, kinds of one's own, namespaces."""

from __future__ import annotations

from tests.kubectl.steps import Case, eventually, run

__all__ = ("CASES",)

# What depends on the program that serves, see docs/embedded.md.
_PORT = ((r'(targetPort: |"serverAddress":"<address>:)\d+', r"\1<port>"), (r"\d+/TCP", "<port>/TCP"))
_ELSEWHERE = "identity-lease|service-cidr-controller|reload-proxy-client-cert"
_HOOKS = ((rf"^.*poststarthook/.*({_ELSEWHERE}).*\n", ""),)
_VERSION = ((r"(v1\.35\.4)\+kubewright", r"\1"), (r"(compiler|gitCommit|goVersion): .*", r"\1: <build>"))

_DISCOVERY = Case(
    "discovery",
    (
        run("version", hide=_VERSION),
        run("version -o yaml", hide=_VERSION),
        run("cluster-info"),
        run("api-versions"),
        run("api-resources"),
        run("api-resources -o wide --sort-by=name"),
        run("api-resources --api-group=apps --namespaced=true -o name"),
        run("explain pods"),
        run("explain deployments.spec.strategy --recursive"),
        run("explain ingress.spec.rules.http.paths.pathType"),
        run("explain hpa --api-version=autoscaling/v2"),
        run("explain widgets", fails=True),
        run("explain pods.spec.wrong", fails=True),
        run("explain crd.spec.names"),
        run("explain deployment.spec.strategy --output=plaintext-openapiv2"),
        run("get --raw /", hide=_HOOKS),
        run("get --raw /api", hide=_PORT),
        run("get --raw /apis/apps"),
        run("get --raw /healthz"),
        run("get --raw '/readyz?verbose'", hide=_HOOKS),
        run("get --raw '/livez?verbose'", hide=_HOOKS),
        run("get --raw /nothing", fails=True),
        run("get --raw /api/v1/namespaces/case-discovery/configmaps/none", fails=True),
        run("get componentstatuses", exception="componentstatuses"),
        run("config current-context"),
        # What servers make at their start, and say of it, comes a moment later.
        eventually("get apiservices"),
        eventually("get priorityclasses"),
        eventually("get flowschemas"),
        eventually("get prioritylevelconfigurations"),
        eventually("get clusterroles"),
        eventually("get clusterrolebindings -o wide"),
        eventually("get roles,rolebindings -A -o wide"),
        run("get namespaces default kube-system kube-public kube-node-lease --show-labels"),
        run("get svc kubernetes -n default -o yaml", hide=_PORT),
        eventually("describe svc kubernetes -n default", hide=_PORT),
        run("get sa -n kube-system", exception="ServiceAccounts in `kube-system`"),
        eventually("get cm -n kube-system"),
        eventually("get leases -n kube-node-lease"),
        run("get runtimeclasses,storageclasses,ingressclasses,csidrivers,pv"),
        run("get servicecidrs"),
        run("get ipaddresses", hide=((r"^.*services/case-.*\n", ""),)),
        run("get validatingadmissionpolicies,validatingwebhookconfigurations,mutatingwebhookconfigurations"),
    ),
)

_RBAC = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: case-access}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: case-access}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}
"""

_ACCESS = Case(
    "access",
    (
        run("auth whoami"),
        run("auth whoami -o yaml"),
        run("auth whoami --as=alice --as-group=team"),
        run("auth can-i create pods"),
        run("auth can-i create pods --as=alice", fails=True),
        run("auth can-i --list --as=alice"),
        run("auth can-i '*' '*'"),
        run("auth can-i get /healthz --as=system:anonymous", fails=True),
        run("auth reconcile -f rbac.yaml"),
        run("auth reconcile -f rbac.yaml"),
        eventually("auth can-i list configmaps --as=alice", until="yes"),  # servers hear of roles a moment later
        run("auth can-i get configmaps/one --as=alice"),
        run("auth can-i list configmaps --as=alice -A", fails=True),
        run("auth can-i --list --as=alice"),
        eventually("get cm --as=alice", until="kube-root-ca.crt"),
        run("get secrets --as=alice", fails=True),
        run("create cm x --as=alice", fails=True),
        run("delete cm kube-root-ca.crt --as=alice", fails=True),
        run("get nodes --as=alice", fails=True),
        run("get --raw /metrics --as=alice", fails=True),
        run("describe role reader"),
        run("describe rolebinding reader"),
        run("describe clusterrole view"),
        run("create role escalate --verb=get --resource=secrets --as=alice", fails=True),
        run("create token default"),
        run("create token default --duration=1h --audience=me -o yaml"),
        run("create token missing", fails=True),
        run("create token default --duration=1s", fails=True),
        run("set subject rolebinding reader --user=bob"),
        run("get rolebinding reader -o wide"),
        run("delete -f rbac.yaml"),
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

_CUSTOM = Case(
    "custom",
    (
        run("apply -f crd.yaml"),
        run("wait --for=condition=Established crd/gadgets.kubectl.example.io --timeout=50s"),
        run("get crd gadgets.kubectl.example.io"),
        run("get crd gadgets.kubectl.example.io -o yaml"),
        run("describe crd gadgets.kubectl.example.io"),
        eventually("api-resources --api-group=kubectl.example.io -o wide", until="gadgets"),
        eventually("explain gadgets", until="What is wished for"),
        run("explain gadget.spec --recursive"),
        run("get gadgets"),
        run("apply -f gadget.yaml"),
        run("apply -f gadget.yaml"),
        run("get gadgets"),
        run("get gd -o wide"),
        run("get gd one -o yaml"),
        run("get all"),
        run("describe gadget one"),
        run("apply -f -", stdin=_GADGET.replace("size: 2", "size: 12"), fails=True),
        run("apply -f -", stdin=_GADGET.replace("size: 2", "size: 9, colour: blue"), fails=True),
        run("apply -f -", stdin=_GADGET.replace("size: 2", "size: 2, colour: pink, tags: [a, a]"), fails=True),
        run("apply -f -", stdin=_GADGET.replace("size: 2", "size: 2, shape: round"), fails=True),
        run("apply -f -", stdin=_GADGET.replace("size: 2", ""), fails=True),
        run("apply -f - --validate=ignore", stdin=_GADGET.replace("size: 2", "size: 2, shape: round")),
        run('patch gadget one --type=merge -p \'{"spec":{"size":"three"}}\'', fails=True),
        run('patch gadget one -p \'{"spec":{"size":3}}\'', fails=True),
        run("scale gadget one --replicas=4"),
        run('patch gadget one --subresource=status --type=merge -p \'{"status":{"ready":4}}\''),
        run("get gadget one --subresource=scale -o yaml"),
        run("wait --for=jsonpath='{.status.ready}'=4 gadget/one --timeout=50s"),
        run("apply --server-side --field-manager=other -f -", stdin=_GADGET.replace("size: 2", "size: 7"), fails=True),
        run("label gadget one a=b"),
        run("get gadgets -l a=b -o name"),
        run("delete gadget one"),
        run("delete -f crd.yaml"),
        eventually("get gadgets", fails=True),
    ),
    {"crd.yaml": _CRD, "gadget.yaml": _GADGET},
)

_FINAL = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: doomed, finalizers: [example.io/hold]}
"""

_NAMESPACES = Case(
    "namespaces",
    (
        run("create namespace doomed"),
        run("create namespace doomed", fails=True),
        run("wait --for=create serviceaccount/default -n doomed --timeout=50s"),
        run("create -n doomed -f -", stdin=_FINAL.replace(", finalizers: [example.io/hold]", "").replace("held", "a")),
        # The controller of namespaces waits for as long as its pods may take to end.
        run('run pod --image=nginx -n doomed --overrides=\'{"spec":{"terminationGracePeriodSeconds":1}}\''),
        run("wait --for=condition=Ready pod/pod -n doomed --timeout=50s"),
        run("create -n doomed -f -", stdin=_FINAL),
        run("delete namespace doomed --wait=false"),
        eventually("get namespace doomed", until="Terminating"),
        run("create configmap late -n doomed", fails=True),
        eventually("get namespace doomed -o yaml", until="SomeFinalizersRemain"),
        eventually("describe namespace doomed"),
        run('patch cm held -n doomed --type=json -p \'[{"op":"remove","path":"/metadata/finalizers"}]\''),
        eventually("wait --for=delete namespace/doomed --timeout=50s"),
        run("get namespace doomed", fails=True),
        run("create configmap x -n nowhere", fails=True),
        run("get pods -n nowhere"),
        run("delete namespace kube-system", fails=True),
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

_LIMITS = Case(
    "limits",
    (
        run("create quota few --hard=configmaps=3,pods=1,services=0"),
        run("apply -f -", stdin=_QUOTA),
        run("describe limits limits"),
        eventually("describe quota few", until="configmaps"),
        eventually("get quota few", until="configmaps: 1/3"),
        # What a server lets through before it has heard of a quota is never counted.
        eventually("create service clusterip none --tcp=80 --dry-run=server", until="exceeded quota", fails=True),
        run("create cm one"),
        run("create cm two"),
        eventually("get quota few", until="configmaps: 3/3"),
        run("create cm three", fails=True),
        run("run first --image=nginx"),
        run("get pod first -o jsonpath='{.spec.containers[0].resources}'"),
        run("run second --image=nginx", fails=True),
        eventually("describe quota few", until="pods"),
        run(
            f"run greedy --image=nginx --overrides='{_GREEDY}'",
            fails=True,
        ),
        eventually("describe namespace case-limits"),
        run("create quota compute --hard=requests.cpu=1,limits.memory=1Gi"),
        run("delete pod first"),
        run("create deployment web --image=nginx"),
        eventually("describe rs -l app=web", until="must specify limits.memory"),
        run("delete cm two"),
        eventually("get quota", until="configmaps: 2/3"),
    ),
)

_ENFORCE = "pod-security.kubernetes.io/enforce"

_SECURITY = Case(
    "security",
    (
        run("run loose --image=nginx"),
        run(f"label namespace case-security {_ENFORCE}=strict", fails=True),
        run(f"label namespace case-security {_ENFORCE}=baseline"),
        # The real server knows of a pod, and of a label, a moment after it was written.
        run("wait --for=condition=Ready pod/loose --timeout=50s"),
        run(f"label namespace case-security {_ENFORCE}=restricted --overwrite"),
        eventually("run tight --image=nginx --dry-run=server", fails=True),
        run("create deployment web --image=nginx"),
        run("scale deployment web --replicas=2"),
        run("set image deployment web nginx=nginx:2"),
        run("get namespace case-security --show-labels"),
        run(f"label namespace case-security {_ENFORCE}-"),
        eventually("run tight --image=nginx --dry-run=server", until="created"),
    ),
)

CASES = (_DISCOVERY, _ACCESS, _CUSTOM, _NAMESPACES, _LIMITS, _SECURITY)
