"""The ValidatingAdmissionPolicy plugin: validations in CEL that are objects of the cluster.

`programs` compiles a policy, `constraints` decides whether a policy or a binding matches a write, `parameters` finds
the parameter objects of a binding, `plugin` is the admission plugin. `type_checking` finds expressions that do not fit
the kinds a policy matches.
"""
