"""Cases about objects nobody works on: making, reading, changing, applying and deleting them."""

from __future__ import annotations

from tests.kubectl.steps import Case, eventually, run, watch

__all__ = ("CASES",)

_CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  labels:
    app: shop
data:
  colour: blue
  size: "1"
"""
_EDITOR = """\
#!/bin/sh
sed -i 's/colour: .*/colour: edited/' "$1"
"""

_READING = Case(
    "reading",
    (
        run("create -f settings.yaml"),
        run("create -f settings.yaml", fails=True),
        run("create configmap other --from-literal=a=1 --from-literal=b=2"),
        run("get configmap"),
        run("get cm settings other"),
        run("get cm -o wide"),
        run("get cm --show-labels"),
        run("get cm -L app"),
        run("get cm -l app=shop -o name"),
        run("get cm -l 'app notin (shop)' --no-headers"),
        run("get cm settings -o json"),
        run("get cm settings -o yaml --show-managed-fields"),
        run("get cm settings -o jsonpath='{.data.colour}'"),
        run("get cm -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'"),
        run("get cm -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour"),
        run("get cm -o go-template='{{range .items}}{{.metadata.name}} {{end}}'"),
        run("get cm --field-selector metadata.name=other"),
        run("get cm --field-selector spec.wrong=other", fails=True),
        run("get cm --sort-by=.metadata.name"),
        run("get cm --chunk-size=1"),
        run("get cm,secret,serviceaccount"),
        run("get all"),
        run("get cm missing", fails=True),
        run("get cm missing --ignore-not-found"),
        run("get widgets", fails=True),
        run("get secrets"),
        run("get pods"),
        run("get cm -A --field-selector metadata.name=settings"),
        run("describe cm settings"),
        run("describe cm missing", fails=True),
        run("get -f settings.yaml"),
        run("get namespace case-reading -o yaml"),
        run("describe namespace case-reading"),
        run("get serviceaccount default -o yaml"),
    ),
    {"settings.yaml": _CONFIG},
)

_CHANGING = Case(
    "changing",
    (
        run("create -f settings.yaml"),
        watch("get cm settings -w --output-watch-events", until="DELETED"),
        run("label cm settings tier=front"),
        run("label cm settings tier=back", fails=True),
        run("label cm settings tier=back --overwrite"),
        run("label cm settings tier-"),
        run("label cm settings 'bad label=x'", fails=True),
        run("label cm settings --list"),
        run("annotate cm settings note=first owner=me"),
        run("annotate cm settings note-"),
        run("annotate cm settings --list"),
        run('patch cm settings -p \'{"data":{"colour":"red"}}\''),
        run('patch cm settings -p \'{"data":{"colour":"red"}}\''),
        run('patch cm settings --type=merge -p \'{"data":{"size":null}}\''),
        run('patch cm settings --type=json -p \'[{"op":"add","path":"/data/weight","value":"5"}]\' -o yaml'),
        run('patch cm settings --type=json -p \'[{"op":"test","path":"/data/weight","value":"6"}]\'', fails=True),
        run('patch cm settings --type=json -p \'[{"op":"remove","path":"/data/none"}]\'', fails=True),
        # Managers that wrote within one second are told in the order of their names.
        run(
            'patch cm settings --type=merge -p \'{"data":{"size":7}}\'',
            fails=True,
            hide=((r'(managedFields\\":\[).*(\]\}\})', r"\1\2"),),
        ),
        run("patch cm missing -p '{}'", fails=True),
        run("edit cm settings"),
        run("get cm settings -o yaml"),
        run("replace -f settings.yaml"),
        run("replace -f - --force --grace-period=0", stdin=_CONFIG.replace("blue", "forced")),
        run("replace -f -", stdin=_CONFIG.replace("settings", "nothing"), fails=True),
        run("create -f - --validate=strict", stdin=_CONFIG.replace("settings", "strict") + "extra: 1\n", fails=True),
        run("create -f - --validate=warn", stdin=_CONFIG.replace("settings", "warned") + "extra: 1\n"),
        run("create -f -", stdin=_CONFIG.replace("settings", "Bad_Name"), fails=True),
        run("create -f - --dry-run=server -o yaml", stdin=_CONFIG.replace("settings", "dry")),
        run("create -f - --dry-run=client -o name", stdin=_CONFIG.replace("settings", "dry")),
        run("delete cm settings --dry-run=server"),
        run("delete cm settings"),
        run("delete cm settings", fails=True),
        run("delete cm settings --ignore-not-found"),
        run("delete cm --all"),
        eventually("get cm", until="kube-root-ca.crt"),
        run("delete cm -l app=none"),
    ),
    {"settings.yaml": _CONFIG, "editor": _EDITOR},
)

_APPLY_SET = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first, labels: {set: one}}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: second, labels: {set: one}}
stringData: {password: secret}
"""
_KUSTOMIZATION = """\
namePrefix: k-
labels:
- pairs: {made: kustomize}
resources: [settings.yaml]
configMapGenerator:
- name: generated
  literals: [x=1]
"""
_SERVER_SIDE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {owner: NAME, own-NAME: "1"}
"""

_APPLYING = Case(
    "applying",
    (
        run("diff -f settings.yaml", fails=True),
        run("apply -f settings.yaml"),
        run("apply -f settings.yaml"),
        run("apply -f -", stdin=_CONFIG.replace("blue", "green")),
        run("apply view-last-applied cm settings"),
        run("apply edit-last-applied cm settings"),
        run("diff -f settings.yaml", fails=True),
        run("apply -f - --dry-run=server", stdin=_CONFIG.replace("blue", "dry")),
        run("apply -f - --dry-run=client", stdin=_CONFIG.replace("blue", "dry")),
        run("apply set-last-applied -f settings.yaml"),
        run("create configmap bare --from-literal=a=1"),
        run("apply -f - -o yaml", stdin=_CONFIG.replace("settings", "bare")),
        run("apply -f set.yaml"),
        run("apply -f - --prune -l set=one --prune-allowlist=core/v1/Secret", stdin=_APPLY_SET.partition("---")[0]),
        run("get cm,secret -l set=one"),
        run("apply -k ."),
        run("get cm -l made=kustomize -o yaml"),
        run("kustomize ."),
        run("delete -k ."),
        run("apply --server-side -f - --field-manager=one", stdin=_SERVER_SIDE.replace("NAME", "one")),
        run("apply --server-side -f - --field-manager=two", stdin=_SERVER_SIDE.replace("NAME", "two"), fails=True),
        run(
            "apply --server-side -f - --field-manager=two --force-conflicts",
            stdin=_SERVER_SIDE.replace("NAME", "two"),
        ),
        run("get cm shared -o yaml --show-managed-fields"),
        run("diff --server-side --field-manager=two -f -", stdin=_SERVER_SIDE.replace("NAME", "one"), fails=True),
        run("apply --server-side -f settings.yaml", fails=True),
        run("get cm settings -o yaml --show-managed-fields"),
        run(
            "apply --server-side -f - --field-manager=two",
            stdin=_SERVER_SIDE.replace("name: shared", "name: 1"),
            fails=True,
        ),
        run("apply -f missing.yaml", fails=True),
        run("apply -f -", stdin="not yaml: [", fails=True),
        run(
            "apply -f -",
            stdin="apiVersion: nothing/v1\nkind: Nothing\nmetadata: {name: x}\n",
            fails=True,
        ),
        run("delete -f set.yaml", fails=True),
        run("delete -f settings.yaml"),
    ),
    {"settings.yaml": _CONFIG, "set.yaml": _APPLY_SET, "kustomization.yaml": _KUSTOMIZATION, "editor": _EDITOR},
)

_GENERATED = (
    "configmap cm --from-file=note.txt --from-literal=a=1",
    "secret generic generic --from-literal=a=1",
    "secret docker-registry registry --docker-username=u --docker-password=p --docker-server=example.com",
    "serviceaccount sa",
    "role role --verb=get,list --resource=pods,deployments.apps",
    "rolebinding binding --role=role --serviceaccount=case-generators:sa",
    "clusterrole generators-cluster --verb=get --resource=nodes --non-resource-url=/metrics",
    "clusterrolebinding generators-binding --clusterrole=generators-cluster --user=alice --group=team",
    "quota quota --hard=pods=5,services=4,requests.cpu=2",
    "poddisruptionbudget pdb --selector=app=web --min-available=50%",
    "priorityclass generators-high --value=1000 --description='high priority'",
    "ingress ingress --class=default --rule='example.com/path*=svc:80,tls=secret' --annotation=a=b",
    "cronjob cron --image=busybox --schedule='0 0 1 1 *' -- sh -c true",
    "service clusterip clusterip --tcp=80:8080",
    "service nodeport nodeport --tcp=80",
    "service loadbalancer balanced --tcp=80",
    "service externalname external --external-name=example.com",
    "deployment deployment --image=nginx --replicas=0 --port=80",
)
_NAMES = (
    "cm/cm",
    "secret/generic",
    "secret/registry",
    "sa/sa",
    "role/role",
    "rolebinding/binding",
    "clusterrole/generators-cluster",
    "clusterrolebinding/generators-binding",
    "quota/quota",
    "pdb/pdb",
    "priorityclass/generators-high",
    "ingress/ingress",
    "cronjob/cron",
    "svc/clusterip",
    "svc/nodeport",
    "svc/external",
    "deployment/deployment",
)

_GENERATORS = Case(
    "generators",
    (
        *(run(f"create {line}") for line in _GENERATED),
        eventually(f"get {' '.join(_NAMES)} -o yaml"),
        eventually(f"get {' '.join(_NAMES)}"),
        eventually(f"describe {' '.join(_NAMES)}"),
        eventually("get svc,endpoints,endpointslices -o wide"),
        run(
            "delete clusterrole/generators-cluster clusterrolebinding/generators-binding priorityclass/generators-high"
        ),
    ),
    {"note.txt": "hello\n"},
)

CASES = (_READING, _CHANGING, _APPLYING, _GENERATORS)
