# Says what a request changes, so that what runs keeps running.
package lib.review

# The objects to judge: "now", and "before" where an update may keep what it has.
objects["now"] := object.get(input, ["review", "object"], null) if not deleting

objects["before"] := input.review.oldObject if {
  input.review.operation == "UPDATE"
  is_object(input.review.oldObject)
}

deleting if input.review.operation == "DELETE"

# The problems that an update does not inherit. A problem names the value it objects to, so
# that another bad value is another problem.
added(problems) := object.get(problems, "now", set()) - object.get(problems, "before", set())

# Users choose names and images: they must not begin a line of their own in a message.
shown(value) := sprintf("%+q", [value]) if {
  is_string(value)
  regex.match(`[^ -~]`, value)
}

else := sprintf("%v", [value])
