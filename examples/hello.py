"""Hello: the smallest operator. A class is the API, a function is what is done about its objects.

    kubewright run --embedded examples/hello.py        # then export the KUBECONFIG it prints, and

    echo '
    apiVersion: hello.example.io/v1
    kind: Greeting
    metadata: {name: world, namespace: default}
    spec: {who: world}
    ' | kubectl apply -f -

Look at `kubectl get greetings`: the columns, the schema that `kubectl explain greeting.spec` shows and the role the
operator runs with all come from this file. Change `who`, and the message follows.

The trap: nothing here writes. `greeting` is a copy of your own; its status is written once, after the function has
returned, and only if it differs from what is stored. So the function may run at any time, any number of times.
"""

from typing import Annotated

from kubewright import Context, Field, Resource, Spec, Status, controller


class GreetingSpec(Spec):
    who: Annotated[str, Field(min_length=1, max_length=40)]
    """Whom to greet."""


class GreetingStatus(Status):
    message: str = ""


class Greeting(
    Resource[GreetingSpec, GreetingStatus],
    group="hello.example.io",
    version="v1",
    columns={"Message": ".status.message", "Age": ".metadata.creationTimestamp"},
):
    """Somebody to be greeted."""


@controller(Greeting)
async def greet(greeting: Greeting, ctx: Context) -> None:
    greeting.status.message = f"Hello, {greeting.spec.who}!"
    ctx.log.info("greeted", who=greeting.spec.who)
