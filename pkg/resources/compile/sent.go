package compile

import (
	"encoding/json"
	"slices"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// NewlySent returns the Secrets that after sends to servers, or over ways, for which before
// does not have them already, with the resource that does. Touched are objects whose content
// is not the same in both.
//
// The hosts in a pull secret say to whom its logins go. So a pull secret is newly sent only
// if after has a store that before has not, and whose proxy, authorities or plain HTTP let
// somebody else answer for such a host. Stores of all levels count for that, because those
// of the cluster say how the registries of the others are reached.
func NewlySent(before, after resource.Objects, touched map[policy.ObjectRef]bool) map[policy.ObjectRef]policy.ObjectRef {
	known := map[sending]bool{}
	for s := range sendings(before, nil) {
		known[s] = true
	}
	newly := map[policy.ObjectRef]policy.ObjectRef{}
	var detour policy.ObjectRef
	var pulls []policy.ObjectRef
	for s, by := range sendings(after, touched) {
		switch {
		case s.way != wayLogin && known[s]:
		case s.way == wayDirect:
			newly[s.secret] = by
		case s.way == wayDetour:
			if detour.Name == "" || by.String() < detour.String() {
				detour = by
			}
		case s.way == wayLogin:
			pulls = append(pulls, s.secret)
		}
	}
	if detour.Name != "" {
		for _, secret := range pulls {
			newly[secret] = detour
		}
	}
	return newly
}

// way says what a sending is.
type way int

const (
	wayDirect way = iota // the resource says where the Secret goes
	wayLogin             // a pull secret, which says itself where it goes
	wayDetour            // no Secret, but a way to registries that may lead elsewhere
)

// sending is a Secret with all that decides where it goes.
type sending struct {
	way    way
	secret policy.ObjectRef
	to     string
}

// sendings returns what resources send, each with a resource that does.
func sendings(o resource.Objects, touched map[policy.ObjectRef]bool) map[sending]policy.ObjectRef {
	all, accounts := map[sending]policy.ObjectRef{}, pullSecretsOf(o)
	for namespace, l := range groupByLevel(o) {
		m := accounts.of(namespace)
		for _, t := range l.trustStores {
			addTrust(all, namespace, t, m, touched)
		}
		for _, s := range l.stores {
			addStore(all, namespace, s, m, touched)
		}
	}
	return all
}

// addTrust adds the credentials of a trust store for servers. A key that is in a Secret is
// sent to nobody.
func addTrust(all map[sending]policy.ObjectRef, namespace verify.Namespace, t entry[v1beta1.TrustStoreSpec], m referenced, touched map[policy.ObjectRef]bool) {
	secrets, authorities := references{referenced: m}, references{referenced: m}
	if kms := t.spec.Source.KMS; kms != nil {
		secrets.secret(kms.SecretRef)
	}
	if vault := t.spec.Source.Vault; vault != nil {
		secrets.key(kindSecret, vault.TokenSecretKeyRef)
		authorities.caBundle(vault.CABundle)
	}
	if access := t.spec.AWSSigner; access != nil {
		secrets.secret(access.SecretRef)
	}
	to := destination(namespace, authorities, touched, t.spec)
	for _, secret := range secrets.list {
		all[sending{wayDirect, secret, to}] = t.source
	}
}

func addStore(all map[sending]policy.ObjectRef, namespace verify.Namespace, s entry[v1beta1.StoreSpec], m referenced, touched map[policy.ObjectRef]bool) {
	network := s.spec
	network.ImagePullSecrets, network.ImagePullSecretsFrom = nil, nil
	logins, authorities, others := references{referenced: m}, references{referenced: m}, references{referenced: m}
	logins.store(v1beta1.StoreSpec{ImagePullSecrets: s.spec.ImagePullSecrets, ImagePullSecretsFrom: s.spec.ImagePullSecretsFrom})
	others.store(v1beta1.StoreSpec{Identity: network.Identity, ClientCertificate: network.ClientCertificate})
	detour := network.CABundle != nil || len(network.AdditionalCABundles) > 0 || network.InsecurePlainHTTP || network.Proxy != nil
	authorities.store(v1beta1.StoreSpec{CABundle: network.CABundle, AdditionalCABundles: network.AdditionalCABundles})
	if network.Proxy != nil {
		others.secret(network.Proxy.SecretRef)
		authorities.caBundle(network.Proxy.CABundle)
	}
	to := destination(namespace, authorities, touched, network)
	if detour {
		all[sending{way: wayDetour, to: to}] = s.source
	}
	for _, secret := range others.list {
		all[sending{wayDirect, secret, to}] = s.source
	}
	for _, secret := range logins.list {
		if secret.Kind == kindSecret {
			all[sending{wayLogin, secret, to}] = s.source
		}
	}
}

// destination returns a text that is the same only for the same servers and ways.
func destination(namespace verify.Namespace, authorities references, touched map[policy.ObjectRef]bool, spec any) string {
	changed := slices.ContainsFunc(authorities.list, func(source policy.ObjectRef) bool { return touched[source] })
	text, err := json.Marshal([]any{namespace, changed, spec})
	if err != nil {
		return "" // unreachable: specs were read from JSON
	}
	return string(text)
}
