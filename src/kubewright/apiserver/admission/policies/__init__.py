"""Admission policies: rules about writes, written as expressions and kept in the cluster.

`programs` compiles a ValidatingAdmissionPolicy, `constraints` decides what a policy or a binding is about,
`parameters` finds the objects a binding hands to a policy, `plugin` is the judge that admission asks;
`type_checking` says what expressions do not fit the types a policy is about.
"""
