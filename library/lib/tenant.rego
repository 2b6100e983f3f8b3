# Says whose namespace a request is in. Undefined means unknown, which a template denies:
# give the value to a rule of its own and negate that rule, because "not" in front of a
# function does not cover its arguments.
package lib.tenant

# Gatekeeper 3.22 and later adds the namespace, and an empty object for one that it does not
# know, as gator does. Then the inventory may have it.
namespace := input.review.namespaceObject if count(input.review.namespaceObject) > 0

else := data.inventory.cluster.v1.Namespace[input.review.namespace]

# The value of a label of the namespace, which is never empty.
label(key) := value if {
  value := namespace.metadata.labels[key]
  is_string(value)
  value != ""
}
