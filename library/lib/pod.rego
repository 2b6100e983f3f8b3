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

template(given) := given if {
  input.review.kind.kind == "Pod"
  is_object(given.spec)
}

# Configuration and Service are Knative's, DeploymentConfig is OpenShift's. A Service of Kubernetes itself has no
# template, so it cannot be judged.
template(given) := given.spec.template if {
  input.review.kind.kind in {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "DeploymentConfig", "Configuration", "Service"}
  is_object(given.spec.template.spec)
}

template(given) := given.spec.jobTemplate.spec.template if {
  input.review.kind.kind == "CronJob"
  is_object(given.spec.jobTemplate.spec.template.spec)
}

# What cannot be judged is a problem of its own.
unreadable["now"] contains msg if {
  not review.deleting
  not found
  not unchanged
  kind := object.get(input, ["review", "kind", "kind"], "unknown")
  msg := sprintf("cannot find the pods of kind %v; limit the constraint's match to kinds that have some", [kind])
}

found if template(review.objects.now)

unchanged if review.objects.now == review.objects.before

unreadable[side] contains sprintf("%s cannot be read: it is not a list of objects", [field]) if {
  some side, template in templates
  some field in object.keys(fields) | {"volumes"}
  list := template.spec[field]
  list != null
  not objects(list)
}

unreadable[side] contains "the securityContext of the pod cannot be read" if {
  context := templates[side].spec.securityContext
  not context_like(context)
}

unreadable[side] contains sprintf("the securityContext of %s cannot be read", [container.named]) if {
  some container in containers[side]
  context := container.spec.securityContext
  not context_like(context)
}

context_like(null)

context_like(value) if is_object(value)

objects(list) if {
  is_array(list)
  every item in list { is_object(item) }
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
# Functions are given the side and not its template: each call compares its arguments as a whole.
setting(side, container, field) := value if {
  value := container.securityContext[field]
  value != null
}

else := value if {
  value := templates[side].spec.securityContext[field]
  value != null
}

else := null

# The kubelet of another system refuses such a pod, so nobody gains by claiming it.
windows(template) if template.spec.os.name == "windows"
