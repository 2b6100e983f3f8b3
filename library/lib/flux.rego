# Says which requests for objects of Flux are judged.
package lib.flux

# Flux removes its finalizers by UPDATE, and what was there before the constraint must remain
# deletable. So an UPDATE that asks for nothing new is not judged, nor is a DELETE.
judged if {
  object.get(input, ["review", "operation"], "") != "DELETE"
  not standing
}

# Whoever stops an object may do so; resuming one is judged.
standing if {
  input.review.operation == "UPDATE"
  is_object(input.review.oldObject.metadata)
  work(input.review.object) == work(input.review.oldObject)
  not resumed
}

work(given) := object.remove(given.spec, stops) if is_object(given.spec)

else := null

# A PushSecret with deletionPolicy Delete takes what it names out of the store.
stops := ["suspend"] if kind == "PushSecret"

else := ["suspend", "deletionPolicy"]

resumed if {
  input.review.oldObject.spec.suspend == true
  object.get(input.review.object.spec, "suspend", false) != true
}

# What is wrong, and with which object.
message(problem) := sprintf("%s %s/%s: %s", [
  kind,
  namespace,
  object.get(input, ["review", "name"], ""),
  problem,
])

# The parts of an object that decide; anything but an object counts as an empty one.
spec := input.review.object.spec if is_object(input.review.object.spec)

else := {}

parameters := input.parameters if is_object(input.parameters)

else := {}

namespace := object.get(input, ["review", "namespace"], "")

kind := object.get(input, ["review", "kind", "kind"], "")
