package live

import (
	"encoding/json"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// newlySent returns the Secrets that a change would send to a new server or over a new way,
// each with the resource of after that sends it. Touched are objects whose content differs
// between before and after.
//
// The hosts in a pull secret say to whom its logins go. So a pull secret is newly sent only
// if after has a store that before has not, and whose proxy, authorities or plain HTTP let
// somebody else answer for such a host. Stores of all levels count for that, because those
// of the cluster say how the registries of the others are reached.
func newlySent(before, after resource.Objects, touched map[policy.ObjectRef]bool) map[policy.ObjectRef]policy.ObjectRef {
	known := sendings(before, nil)
	newly := map[policy.ObjectRef]policy.ObjectRef{}
	var detour policy.ObjectRef
	var pulls []policy.ObjectRef
	for s, by := range sendings(after, touched) {
		_, earlier := known[s]
		switch {
		case s.use == resource.PullSecret:
			pulls = append(pulls, s.secret)
		case earlier:
		case s.use == resource.Credential:
			newly[s.secret] = by
		case detour.Name == "" || by.String() < detour.String():
			detour = by
		}
	}
	if detour.Name != "" {
		for _, secret := range pulls {
			newly[secret] = detour
		}
	}
	return newly
}

// sending is a Secret with all that decides where it goes. With [resource.Authority] it is no
// Secret, but a way to registries that may lead elsewhere.
type sending struct {
	use    resource.Use
	secret policy.ObjectRef
	to     string
}

// sendings returns what resources send, each with a resource that does.
func sendings(o resource.Objects, touched map[policy.ObjectRef]bool) map[sending]policy.ObjectRef {
	all, pulls := map[sending]policy.ObjectRef{}, o.PullSecrets()
	for _, object := range o.Resources {
		var spec any
		detour := false
		switch object := object.(type) {
		case *v1beta1.TrustStore:
			spec = object.Spec
		case *v1beta1.ClusterTrustStore:
			spec = object.Spec
		case *v1beta1.Store:
			spec, detour = route(object.Spec)
		case *v1beta1.ClusterStore:
			spec, detour = route(object.Spec)
		default:
			continue
		}
		by, owner := resource.RefOf(object), object.GetNamespace()
		var sent []sending
		changed := false
		for _, f := range resource.FieldsOf(object) {
			for _, source := range f.Named(o.ReferenceNamespace(owner), pulls) {
				switch {
				case f.Use == resource.Authority:
					changed = changed || touched[source]
				case f.Use == resource.Credential:
					sent = append(sent, sending{use: f.Use, secret: source})
				case f.Use != resource.TrustMaterial && source.Kind == resource.KindSecret: // a key that is in a Secret is sent to nobody
					sent = append(sent, sending{use: resource.PullSecret, secret: source})
				}
			}
		}
		to := destination(owner, changed, spec)
		if detour {
			all[sending{use: resource.Authority, to: to}] = by
		}
		for _, s := range sent {
			s.to = to
			all[s] = by
		}
	}
	return all
}

// route returns a store without its pull secrets, which say themselves where they go, and
// whether it lets somebody else than its registries answer for them.
func route(spec v1beta1.StoreSpec) (v1beta1.StoreSpec, bool) {
	spec.ImagePullSecrets, spec.ImagePullSecretsFrom = nil, nil
	return spec, spec.CABundle != nil || len(spec.AdditionalCABundles) > 0 || spec.InsecurePlainHTTP || spec.Proxy != nil
}

// destination returns a text that is the same only for the same servers and ways.
func destination(namespace string, changed bool, spec any) string {
	text, err := json.Marshal([]any{namespace, changed, spec})
	if err != nil {
		return "" // unreachable: specs were read from JSON
	}
	return string(text)
}
