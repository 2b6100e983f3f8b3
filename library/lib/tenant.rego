# Says whose namespace a request is in. Undefined means unknown, which a template denies:
# give the value to a rule of its own and negate that rule, because "not" in front of a
# function does not cover its arguments.
package lib.tenant

# Gatekeeper 3.22 and later adds the namespace; gator, which has {} there, and older versions
# take it from the inventory.
namespace := input.review.namespaceObject if is_object(input.review.namespaceObject.metadata)

else := data.inventory.cluster.v1.Namespace[input.review.namespace]

# The value of a label of the namespace, which is never empty.
label(key) := value if {
  value := namespace.metadata.labels[key]
  is_string(value)
  value != ""
}
