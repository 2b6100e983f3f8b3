package compile

import "github.com/landwaiter/landwaiter/pkg/decide/verify"

// Related returns the namespaces whose reports a change of one may concern: itself, the
// members of a Tenant whose home it is, and the home of its Tenant, whose reports count
// members.
func (s *Snapshot) Related(namespace verify.Namespace) []verify.Namespace {
	list := s.concerned(namespace)
	if holder := s.tenants.Holder(string(namespace)); holder != nil && holder.Spec.HomeNamespace != string(namespace) {
		list = append(list, verify.Namespace(holder.Spec.HomeNamespace))
	}
	return list
}

// Relinked returns the namespaces of s whose configuration was made again since an earlier
// snapshot: a change of one namespace may deny others of its account.
func (s *Snapshot) Relinked(earlier *Snapshot) []verify.Namespace {
	var list []verify.Namespace
	for namespace, v := range s.namespaces {
		if earlier.namespaces[namespace] != v {
			list = append(list, namespace)
		}
	}
	return list
}
