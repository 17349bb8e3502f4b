"""Chapters about objects nobody works on: making, reading, changing, applying and deleting them."""

from __future__ import annotations

from tests.kubectl.steps import Chapter, ask, do, watch

__all__ = ("CHAPTERS",)

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

_READING = Chapter(
    "reading",
    (
        do("create -f settings.yaml"),
        do("create -f settings.yaml", fails=True),
        do("create configmap other --from-literal=a=1 --from-literal=b=2"),
        do("get configmap"),
        do("get cm settings other"),
        do("get cm -o wide"),
        do("get cm --show-labels"),
        do("get cm -L app"),
        do("get cm -l app=shop -o name"),
        do("get cm -l 'app notin (shop)' --no-headers"),
        do("get cm settings -o json"),
        do("get cm settings -o yaml --show-managed-fields"),
        do("get cm settings -o jsonpath='{.data.colour}'"),
        do("get cm -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'"),
        do("get cm -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour"),
        do("get cm -o go-template='{{range .items}}{{.metadata.name}} {{end}}'"),
        do("get cm --field-selector metadata.name=other"),
        do("get cm --field-selector spec.wrong=other", fails=True),
        do("get cm --sort-by=.metadata.name"),
        do("get cm --chunk-size=1"),
        do("get cm,secret,serviceaccount"),
        do("get all"),
        do("get cm missing", fails=True),
        do("get cm missing --ignore-not-found"),
        do("get widgets", fails=True),
        do("get secrets"),
        do("get pods"),
        do("get cm -A --field-selector metadata.name=settings"),
        do("describe cm settings"),
        do("describe cm missing", fails=True),
        do("get -f settings.yaml"),
        do("get namespace chapter-reading -o yaml"),
        do("describe namespace chapter-reading"),
        do("get serviceaccount default -o yaml"),
    ),
    {"settings.yaml": _CONFIG},
)

_CHANGING = Chapter(
    "changing",
    (
        do("create -f settings.yaml"),
        watch("get cm settings -w --output-watch-events", until="DELETED"),
        do("label cm settings tier=front"),
        do("label cm settings tier=back", fails=True),
        do("label cm settings tier=back --overwrite"),
        do("label cm settings tier-"),
        do("label cm settings 'bad label=x'", fails=True),
        do("label cm settings --list"),
        do("annotate cm settings note=first owner=me"),
        do("annotate cm settings note-"),
        do("annotate cm settings --list"),
        do('patch cm settings -p \'{"data":{"colour":"red"}}\''),
        do('patch cm settings -p \'{"data":{"colour":"red"}}\''),
        do('patch cm settings --type=merge -p \'{"data":{"size":null}}\''),
        do('patch cm settings --type=json -p \'[{"op":"add","path":"/data/weight","value":"5"}]\' -o yaml'),
        do('patch cm settings --type=json -p \'[{"op":"test","path":"/data/weight","value":"6"}]\'', fails=True),
        do('patch cm settings --type=json -p \'[{"op":"remove","path":"/data/none"}]\'', fails=True),
        # Managers that wrote within one second are told in the order of their names.
        do(
            'patch cm settings --type=merge -p \'{"data":{"size":7}}\'',
            fails=True,
            hide=((r'(managedFields\\":\[).*(\]\}\})', r"\1\2"),),
        ),
        do("patch cm missing -p '{}'", fails=True),
        do("edit cm settings"),
        do("get cm settings -o yaml"),
        do("replace -f settings.yaml"),
        do("replace -f - --force --grace-period=0", stdin=_CONFIG.replace("blue", "forced")),
        do("replace -f -", stdin=_CONFIG.replace("settings", "nothing"), fails=True),
        do("create -f - --validate=strict", stdin=_CONFIG.replace("settings", "strict") + "extra: 1\n", fails=True),
        do("create -f - --validate=warn", stdin=_CONFIG.replace("settings", "warned") + "extra: 1\n"),
        do("create -f -", stdin=_CONFIG.replace("settings", "Bad_Name"), fails=True),
        do("create -f - --dry-run=server -o yaml", stdin=_CONFIG.replace("settings", "dry")),
        do("create -f - --dry-run=client -o name", stdin=_CONFIG.replace("settings", "dry")),
        do("delete cm settings --dry-run=server"),
        do("delete cm settings"),
        do("delete cm settings", fails=True),
        do("delete cm settings --ignore-not-found"),
        do("delete cm --all"),
        ask("get cm", until="kube-root-ca.crt"),
        do("delete cm -l app=none"),
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

_APPLYING = Chapter(
    "applying",
    (
        do("diff -f settings.yaml", fails=True),
        do("apply -f settings.yaml"),
        do("apply -f settings.yaml"),
        do("apply -f -", stdin=_CONFIG.replace("blue", "green")),
        do("apply view-last-applied cm settings"),
        do("apply edit-last-applied cm settings"),
        do("diff -f settings.yaml", fails=True),
        do("apply -f - --dry-run=server", stdin=_CONFIG.replace("blue", "dry")),
        do("apply -f - --dry-run=client", stdin=_CONFIG.replace("blue", "dry")),
        do("apply set-last-applied -f settings.yaml"),
        do("create configmap bare --from-literal=a=1"),
        do("apply -f - -o yaml", stdin=_CONFIG.replace("settings", "bare")),
        do("apply -f set.yaml"),
        do("apply -f - --prune -l set=one --prune-allowlist=core/v1/Secret", stdin=_APPLY_SET.partition("---")[0]),
        do("get cm,secret -l set=one"),
        do("apply -k ."),
        do("get cm -l made=kustomize -o yaml"),
        do("kustomize ."),
        do("delete -k ."),
        do("apply --server-side -f - --field-manager=one", stdin=_SERVER_SIDE.replace("NAME", "one")),
        do("apply --server-side -f - --field-manager=two", stdin=_SERVER_SIDE.replace("NAME", "two"), fails=True),
        do(
            "apply --server-side -f - --field-manager=two --force-conflicts",
            stdin=_SERVER_SIDE.replace("NAME", "two"),
        ),
        do("get cm shared -o yaml --show-managed-fields"),
        do("diff --server-side --field-manager=two -f -", stdin=_SERVER_SIDE.replace("NAME", "one"), fails=True),
        do("apply --server-side -f settings.yaml", fails=True),
        do("get cm settings -o yaml --show-managed-fields"),
        do(
            "apply --server-side -f - --field-manager=two",
            stdin=_SERVER_SIDE.replace("name: shared", "name: 1"),
            fails=True,
        ),
        do("apply -f missing.yaml", fails=True),
        do("apply -f -", stdin="not yaml: [", fails=True),
        do(
            "apply -f -",
            stdin="apiVersion: nothing/v1\nkind: Nothing\nmetadata: {name: x}\n",
            fails=True,
        ),
        do("delete -f set.yaml", fails=True),
        do("delete -f settings.yaml"),
    ),
    {"settings.yaml": _CONFIG, "set.yaml": _APPLY_SET, "kustomization.yaml": _KUSTOMIZATION, "editor": _EDITOR},
)

_GENERATED = (
    "configmap cm --from-file=note.txt --from-literal=a=1",
    "secret generic generic --from-literal=a=1",
    "secret docker-registry registry --docker-username=u --docker-password=p --docker-server=example.com",
    "serviceaccount sa",
    "role role --verb=get,list --resource=pods,deployments.apps",
    "rolebinding binding --role=role --serviceaccount=chapter-generators:sa",
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

_GENERATORS = Chapter(
    "generators",
    (
        *(do(f"create {line}") for line in _GENERATED),
        ask(f"get {' '.join(_NAMES)} -o yaml"),
        ask(f"get {' '.join(_NAMES)}"),
        ask(f"describe {' '.join(_NAMES)}"),
        ask("get svc,endpoints,endpointslices -o wide"),
        do("delete clusterrole/generators-cluster clusterrolebinding/generators-binding priorityclass/generators-high"),
    ),
    {"note.txt": "hello\n"},
)

CHAPTERS = (_READING, _CHANGING, _APPLYING, _GENERATORS)
