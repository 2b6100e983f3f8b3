package compile

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/trust"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Ends are the expiry times of one resource's trust material.
type Ends struct {
	List []trust.End
	// Unknown says why some of them are unknown, "" if none is.
	Unknown string
}

// Due describes the expiries that somebody should act on now, the earliest first, and reports
// whether the first of them has passed.
func (e Ends) Due(now time.Time) (texts []string, passed bool) {
	due := slices.DeleteFunc(slices.Clone(e.List), func(end trust.End) bool { return !end.Due(now) })
	slices.SortStableFunc(due, func(a, b trust.End) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Part, b.Part)) })
	return MapSlice(due, func(end trust.End) string {
		verb := "expires"
		if !end.At.After(now) {
			verb = "expired"
		}
		return fmt.Sprintf("%s %s at %s", end.Part, verb, end.At.UTC().Format(time.RFC3339))
	}), len(due) > 0 && !due[0].At.After(now)
}

// First returns the first expiry that is due or in the future, and false if there is none. An
// expiry that a successor covers is ignored, and one with its own notice counts once it is
// due.
func (e Ends) First(now time.Time) (first time.Time, ok bool) {
	for _, end := range e.List {
		waits := end.Notice == 0 && end.At.After(now)
		if (waits || end.Due(now)) && (!ok || end.At.Before(first)) {
			first, ok = end.At, true
		}
	}
	return first, ok
}

// EndsIn returns the expiry times of a trust store's trust material, and those of the TUF
// repository from which its ConfigMap was exported.
func (t *TrustStore) EndsIn(m Referenced, from *v1beta1.KeyReference) *Ends {
	if t.Err != nil {
		return &Ends{Unknown: "the trust material cannot be used; see the condition Ready"}
	}
	found := &Ends{List: slices.Concat(trust.CertificateEnds(t.Certificates), trust.ListEnds(t.lists), t.fetchedEnds)}
	if t.Root != nil {
		found.List = append(found.List, trust.RootEnds(t.Root)...)
	}
	if from == nil {
		return found
	}
	source := policy.ObjectRef{Kind: resource.KindConfigMap, Namespace: m.Namespace, Name: from.Name}
	roles, err := external.DecodeRoles(m.roles[source])
	if err != nil {
		found.Unknown = fmt.Sprintf("annotation %s of %s cannot be read: %v; export the ConfigMap again", v1beta1.AnnotationTUFRoles, source, err)
	}
	if t.kind == v1beta1.TrustStoreTypeSigstoreRoot || t.kind == v1beta1.TrustStoreTypeTimestampAuthorities {
		found.List = append(found.List, roleEnds(roles)...)
	}
	return found
}

// roleEnds returns the expiry of the TUF roles that renew the repository's content.
func roleEnds(roles []external.TUFRole) []trust.End {
	var ends []trust.End
	for _, role := range roles {
		if role.Renews() {
			ends = append(ends, trust.RoleEnd(role.Name, role.Version, role.Expires))
		}
	}
	return ends
}

// keptEnds returns the expiry times in a fetched value. While fetching fails, the last value
// expires when it is no longer kept.
func keptEnds(value external.Value) []trust.End {
	ends := roleEnds(value.Roles)
	if !value.KeptUntil.IsZero() {
		kept := value.KeptUntil.Sub(value.FetchedAt)
		ends = append(ends,
			trust.End{Part: "the trust material that was fetched last, because fetching fails,", At: value.KeptUntil.UTC(),
				Notice: max(kept-failingFor, kept/2)})
	}
	return ends
}

// Ends returns the expiry times of the certificates that a store connects with.
func (s Store) Ends() *Ends {
	if s.Broken != nil {
		return &Ends{Unknown: "the store cannot be used; see the condition Ready"}
	}
	found := &Ends{List: trust.PEMEnds(s.RootCAs)}
	if s.ClientCertificate != nil {
		for _, der := range s.ClientCertificate.Certificate {
			found.List = append(found.List, trust.PEMEnds(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))...)
		}
	}
	return found
}
