package isolation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// pieces checks what each piece grants to the Git accounts of all Tenants, and tries to turn another
// ClusterRole into a piece, with the permissions of the controller that aggregates.
func (s *scene) pieces(ctx context.Context) []Result {
	r := Result{Case: "reconciler-pieces", Tries: "does a piece give the Git accounts more than kinds of others", Who: "everybody",
		Outcome: Held, By: []string{"the rules of the pieces"}}
	var wide, remedies []string
	for i := range s.roles {
		if excess := resource.PieceExcess(&s.roles[i], s.landwaiter.Name); len(excess) > 0 {
			name := shown(s.roles[i].Name)
			wide = append(wide, fmt.Sprintf("ClusterRole %s has %s", name, shown(strings.Join(excess, ", "))))
			remedies = append(remedies, "kubectl label clusterrole "+resource.ShellWord(name)+" "+v1beta1.LabelPiece+"-")
		}
	}
	switch {
	case s.unreadRoles != nil:
		r.Outcome, r.By, r.Why, r.Fix = NotTried, nil, notReadable(s.unreadRoles), "ask for permission to list clusterroles"
	case len(wide) > 0:
		r.Outcome, r.By, r.Why, r.Fix = NotHeld, nil, strings.Join(wide, "; ")+", and every Git account gets it",
			"take it out, or "+strings.Join(remedies, " && ")
	}
	taken := change("give every Git account the permissions of ClusterRole admin", group(rbacGroup, "v1", "clusterroles"), "", "admin",
		metadata("labels", v1beta1.LabelPiece, "true"))
	return append([]Result{r},
		s.byController(ctx, "reconciler-pieces", "make another ClusterRole a piece of the Git accounts' role", s.controller(roleAggregation),
			guarded("reconciler-pieces", taken)...)...)
}

// trusted is a Secret of a team that a Store or a TrustStore names.
type trusted struct{ namespace, name, guardrail string }

// trusted finds one in a namespace for each kind that names some.
func (s *server) trusted(ctx context.Context, t *team, namespace string) error {
	stores, err := list[v1beta1.Store](ctx, s, listing(group(v1beta1.Group, v1beta1.Version, "stores"), namespace), "")
	if err != nil {
		return err
	}
	trustStores, err := list[v1beta1.TrustStore](ctx, s, listing(group(v1beta1.Group, v1beta1.Version, "truststores"), namespace), "")
	if err != nil {
		return err
	}
	var fields []resource.Field
	for i := range stores {
		fields = append(fields, resource.FieldsOfStore(stores[i].Spec)...)
	}
	t.trusted = append(t.trusted, secretOf(fields, namespace, "secrets-of-stores")...)
	fields = nil
	for i := range trustStores {
		fields = append(fields, resource.FieldsOfTrustStore(trustStores[i].Spec)...)
	}
	t.trusted = append(t.trusted, secretOf(fields, namespace, "secrets-of-truststores")...)
	return nil
}

// secretOf returns the first Secret that fields name: guardrails treat all in the same way.
func secretOf(fields []resource.Field, namespace, guardrail string) []trusted {
	at := slices.IndexFunc(fields, func(f resource.Field) bool { return f.Kind == resource.KindSecret })
	if at < 0 {
		return nil
	}
	return []trusted{{namespace, fields[at].Name, guardrail}}
}

// writer is a kind whose controller writes the Secret that an object names.
type writer struct {
	schema.GroupVersionResource
	kind string
	// spec names a Secret in a form that the kind's schema admits.
	spec func(secret string) map[string]any
}

// writers are the writers of the pieces, in each version that may be served.
func writers() []writer {
	external := func(secret string) map[string]any {
		return map[string]any{"secretStoreRef": map[string]any{"name": probeName, "kind": "SecretStore"},
			"target": map[string]any{"name": secret},
			"data":   []any{map[string]any{"secretKey": "probe", "remoteRef": map[string]any{"key": "probe"}}}}
	}
	const stores, certificates = "external-secrets.io", "cert-manager.io"
	return []writer{
		{group(stores, "v1", "externalsecrets"), "ExternalSecret", external},
		{group(stores, "v1beta1", "externalsecrets"), "ExternalSecret", external},
		{group(stores, "v1alpha1", "pushsecrets"), "PushSecret", func(secret string) map[string]any {
			return map[string]any{"secretStoreRefs": []any{map[string]any{"name": probeName, "kind": "SecretStore"}},
				"selector": map[string]any{"secret": map[string]any{"name": probeName}},
				"data":     []any{map[string]any{"match": map[string]any{"secretKey": "probe", "remoteRef": map[string]any{"remoteKey": secret}}}}}
		}},
		{group(certificates, "v1", "certificates"), "Certificate", func(secret string) map[string]any {
			return map[string]any{"secretName": secret, "issuerRef": map[string]any{"name": probeName}, "dnsNames": []any{"probe.example.com"}}
		}},
		{group(certificates, "v1", "issuers"), "Issuer", func(secret string) map[string]any {
			return map[string]any{"acme": map[string]any{"server": "https://acme.example.com/directory",
				"privateKeySecretRef": map[string]any{"name": secret}}}
		}},
		{group("secrets-store.csi.x-k8s.io", "v1", "secretproviderclasses"), "SecretProviderClass", func(secret string) map[string]any {
			return map[string]any{"provider": "vault", "secretObjects": []any{map[string]any{"secretName": secret, "type": "Opaque",
				"data": []any{map[string]any{"objectName": "probe", "key": "probe"}}}}}
		}},
	}
}

// served returns the writers that the cluster has. It requests one object of each kind: teams may write
// any number of them.
func (s *server) served(ctx context.Context) (found []writer, err error) {
	for _, w := range writers() {
		_, err := raw(s.client.Get().AbsPath(listing(w.GroupVersionResource, "").path()).Param("limit", "1").Do(ctx))
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("list %s: %w", w.Resource, err)
		}
		found = append(found, w)
	}
	return found, nil
}

// secretWriters requests objects that make controllers write the Secrets that decide what the team trusts.
func secretWriters(s *scene, t *team) []request {
	var all []request
	for _, secret := range t.trusted {
		for _, w := range s.writers {
			r := create(w.GroupVersionResource, w.kind, secret.namespace, map[string]any{"spec": w.spec(secret.name)})
			r.does += " that writes Secret " + secret.name
			all = append(all, guarded(secret.guardrail, r)...)
		}
	}
	return all
}
