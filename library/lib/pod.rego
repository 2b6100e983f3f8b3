# Finds the pods in a request: of Pods and of the kinds that make them.
package lib.pod

import data.lib.review

fields := {"containers": "container", "initContainers": "init container", "ephemeralContainers": "ephemeral container"}

# The pod templates to judge, as in lib.review: metadata and spec. A changed template makes
# new pods, so all of it is judged.
templates["now"] := template(review.objects.now)

templates["before"] := template(review.objects.before) if input.review.kind.kind == "Pod"

templates["before"] := same if {
  same := template(review.objects.now)
  same == template(review.objects.before)
}

template(object) := object if {
  input.review.kind.kind == "Pod"
  is_object(object.spec)
}

template(object) := object.spec.template if {
  input.review.kind.kind in {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job"}
  is_object(object.spec.template.spec)
}

template(object) := object.spec.jobTemplate.spec.template if {
  input.review.kind.kind == "CronJob"
  is_object(object.spec.jobTemplate.spec.template.spec)
}

# What cannot be judged is a problem of its own.
unreadable["now"] contains msg if {
  not review.deleting
  not templates.now
  kind := object.get(input, ["review", "kind", "kind"], "unknown")
  msg := sprintf("cannot find the pods of kind %v; limit the constraint's match to kinds that have some", [kind])
}

unreadable[side] contains sprintf("%s is not a list of containers", [field]) if {
  some side, template in templates
  some field, _ in fields
  list := template.spec[field]
  list != null
  not is_array(list)
}

unreadable[side] contains sprintf("%s[%d] is not a container", [field, i]) if {
  some side, template in templates
  some field, _ in fields
  is_array(template.spec[field])
  some i, container in template.spec[field]
  not is_object(container)
}

# Every container, with words that name it.
containers[side] contains {"named": named, "spec": container} if {
  some side, template in templates
  some field, word in fields
  some i, container in template.spec[field]
  is_object(container)
  named := sprintf("%s %s", [word, review.shown(object.get(container, "name", i))])
}

# A field of the security context: the container's value beats the pod's. Null if neither has one.
setting(template, container, field) := value if {
  value := container.securityContext[field]
  value != null
}

else := value if {
  value := template.spec.securityContext[field]
  value != null
}

else := null

# The kubelet of another system refuses such a pod, so nobody gains by claiming it.
windows(template) if template.spec.os.name == "windows"
