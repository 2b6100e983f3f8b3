package precedence

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// A resource that the schema refuses, though a cluster stored it, allows nothing that it did not
// allow before: neither as reading leaves it, nor if only compile looks at it.
func TestNothingIsAllowedBecauseTheSchemaRefusesAResource(t *testing.T) {
	engine, schemas := verify.NewEngine(nothing{}, now, verify.Options{}), schema.Embedded()
	compared, denied := 0, 0
	for seed := range count() / 50 {
		d := newDice(seed)
		w, shelves := d.world(), &shelves{}
		w.Evidence = d.evidence()
		require.NoError(t, shelves.fill(w.Evidence))
		objects := w.objects()
		i := d.IntN(len(objects.Resources))
		damaged, _ := objects.Resources[i].DeepCopyObject().(v1beta1.Object)
		d.damage(damaged)
		why := schemas.Refuses(t.Context(), damaged)
		require.Error(t, why, "seed %d: %+v", seed, damaged)
		before, _ := resolve.New(objects, nil, shelves.outside())
		for name, object := range map[string]v1beta1.Object{"as it is read": resource.Refuse(damaged, why), "unread": damaged} {
			changed := objects
			changed.Resources = slices.Clone(objects.Resources)
			changed.Resources[i] = object
			after, problems := resolve.New(changed, nil, shelves.outside())
			require.True(t, slices.ContainsFunc(problems, func(p resource.Problem) bool { return p.Source == resource.RefOf(object) }), "seed %d, %s: nobody is told of %s: %v", seed, name, resource.RefOf(object), why)
			for namespace := range w.Namespaces {
				for _, asked := range images() {
					was, is := ask(t, engine, before, namespace, asked), ask(t, engine, after, namespace, asked)
					// An exception lets in what is denied, and not what is undecided.
					more := is.Outcome == policy.Allowed && (was.Outcome == policy.Denied || was.Outcome == policy.Undecided && is.Exception == (policy.ObjectRef{}))
					require.False(t, more, "seed %d, %s: %s in %s is allowed since %s is refused: %v", seed, name, asked.Name, namespace, resource.RefOf(object), why)
					if compared++; is.Outcome != policy.Allowed && was.Outcome == policy.Allowed {
						denied++
					}
				}
			}
		}
	}
	t.Logf("%d verdicts, %d of them denied what was allowed before", compared, denied)
	require.Greater(t, denied, compared/100)
}

// damage makes a resource one that its schema refuses, in a way that compile cannot use either.
func (d dice) damage(object v1beta1.Object) {
	switch o := object.(type) {
	case *v1beta1.Verifier:
		d.damageVerifier(&o.Spec)
	case *v1beta1.ClusterVerifier:
		d.damageVerifier(&o.Spec)
	case *v1beta1.VerificationPolicy:
		d.damagePolicy(&o.Spec)
	case *v1beta1.ClusterVerificationPolicy:
		if d.once(3) {
			o.Spec.Scope = "Perhaps"
			return
		}
		d.damagePolicy(&o.Spec)
	case *v1beta1.Store:
		o.Spec.Registries = pick(d, nil, []string{}, []string{""})
	case *v1beta1.ClusterStore:
		o.Spec.Registries = pick(d, nil, []string{}, []string{""})
	case *v1beta1.TrustStore:
		d.damageTrustStore(&o.Spec.Type, &o.Spec.Source.Inline)
	case *v1beta1.ClusterTrustStore:
		d.damageTrustStore(&o.Spec.Type, &o.Spec.Source.Inline)
	case *v1beta1.Exception:
		d.damageTerms(&o.Spec)
	case *v1beta1.ClusterException:
		d.damageTerms(&o.Spec)
	case *v1beta1.Tenant:
		// It still says which namespaces it has: with others it would be another Tenant, and what
		// this one denied would be nobody's.
		if o.Spec.NamespacePrefix == "" && d.once(2) {
			o.Spec.NamespacePrefix = pick(d, "UPPER-", "nodash")
		} else {
			o.Spec.Verification.PolicyLevel = "Perhaps"
		}
	default:
		panic(fmt.Sprintf("worlds have no %T", object))
	}
}

func (d dice) damageVerifier(spec *v1beta1.VerifierSpec) {
	switch d.IntN(4) {
	case 0:
		spec.Type = pick[v1beta1.VerifierType](d, "", "Perhaps", v1beta1.VerifierTypeNotation)
	case 1:
		spec.Cosign, spec.Attestation = nil, nil
	case 2:
		spec.Images = pick(d, []string{""}, []string{"**", ""})
	default:
		for _, signers := range signersOf(spec) {
			signers.Keyless = &v1beta1.Keyless{}
		}
	}
}

func signersOf(spec *v1beta1.VerifierSpec) (found []*v1beta1.Signers) {
	if spec.Cosign != nil {
		found = append(found, &spec.Cosign.Signers)
	}
	if spec.Attestation != nil {
		found = append(found, &spec.Attestation.Signers)
	}
	return found
}

func (d dice) damagePolicy(spec *v1beta1.VerificationPolicySpec) {
	if len(spec.Rules) == 0 || d.once(3) {
		if d.once(2) {
			spec.DefaultAction = "Perhaps"
		} else {
			spec.EnforcementAction = "Perhaps"
		}
		return
	}
	rule := &spec.Rules[d.IntN(len(spec.Rules))]
	switch d.IntN(4) {
	case 0:
		rule.Images = pick(d, nil, []string{}, []string{""})
	case 1:
		rule.Action = "Perhaps"
	case 2:
		rule.Action, rule.Require = v1beta1.RuleActionAllow, []v1beta1.Requirement{{AnyOf: []string{"v"}}}
	default:
		rule.Action, rule.Require = v1beta1.RuleActionRequire, pick(d, nil, []v1beta1.Requirement{}, []v1beta1.Requirement{{}}, []v1beta1.Requirement{{AnyOf: []string{"v"}, AllOf: []string{"v"}}})
	}
}

func (d dice) damageTrustStore(kind *v1beta1.TrustStoreType, inline *string) {
	if d.once(2) {
		*kind = pick[v1beta1.TrustStoreType](d, "", "Perhaps")
		return
	}
	*inline = ""
}

func (d dice) damageTerms(terms *v1beta1.ExceptionSpec) {
	switch d.IntN(3) {
	case 0:
		terms.Until = pick(d, "", "soon", "2030-01-02")
	case 1:
		terms.Reason = pick(d, "", "a\nb", "\x1b[31m")
	default:
		terms.Ticket = "a\tb"
	}
}

// verdict is an outcome, and the exception that made it.
type verdict struct {
	Outcome   policy.Outcome
	Exception policy.ObjectRef
}

// ask returns the verdict on an image.
func ask(t *testing.T, engine *verify.Engine, snapshot *resolve.Snapshot, namespace string, asked Image) verdict {
	t.Helper()
	result := engine.Verify(t.Context(), rigged(snapshot.For(verify.Namespace(namespace))), asked.reference())
	return verdict{result.Verdict.Outcome(), result.Exception}
}
