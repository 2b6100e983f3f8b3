package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about resources.
const (
	ResourceNotReady      = "ResourceNotReady"
	ResourceInvalid       = "ResourceInvalid"
	ResourceUnsatisfiable = "ResourceUnsatisfiable"
	ResourceUnused        = "ResourceUnused"
	TrustEnds             = "TrustEnds"
)

func targetOf(o v1beta1.Object) target {
	return target{resource.RefOf(o), v1beta1.Group}
}

// dependents is the end of the condition Ready of most kinds, too.
const dependents = "what depends on it is denied"

// unusable says what the consequence of a resource that is not Ready is.
func unusable(o v1beta1.Object) string {
	switch o := o.(type) {
	case *v1beta1.VerificationPolicy, *v1beta1.ClusterVerificationPolicy:
		if c := resource.Lacks(o, v1beta1.ConditionReady); c != nil {
			if _, denied, found := strings.Cut(c.Message, resource.AndDenies); found {
				return "Landwaiter denies " + denied
			}
		}
	case *v1beta1.Exception, *v1beta1.ClusterException:
		return "it is ignored"
	case *v1beta1.ClusterQuota:
		return "the default shares apply to its namespaces and Tenants"
	case *v1beta1.Tenant:
		return "its namespaces are denied, or other rules apply there: see its conditions"
	}
	return dependents
}

func notReady(v *view, add func(resource.Finding)) {
	causes := map[string]bool{}
	for _, o := range v.Resources {
		if c := resource.Lacks(o, v1beta1.ConditionReady); c != nil && c.Reason != string(policy.ReasonReferenceNotReady) {
			causes[o.GetNamespace()] = true
		}
	}
	for _, o := range v.Resources {
		c := resource.Lacks(o, v1beta1.ConditionReady)
		if c == nil || c.Reason == string(policy.ReasonReferenceNotReady) && (causes[o.GetNamespace()] || causes[""]) {
			continue // its reference is a separate finding
		}
		if strings.HasPrefix(c.Message, resource.RefusedBySchema) && v.refusals()[resource.RefOf(o)] != nil {
			continue // as ResourceInvalid finds, without a condition too
		}
		message, _, _ := strings.Cut(strings.TrimSuffix(c.Message, "; "+dependents), resource.AndDenies)
		f := resource.Finding{ID: ResourceNotReady, Severity: resource.Error, Object: resource.RefOf(o),
			Message: fmt.Sprintf("it is not Ready: %s: %s", c.Reason, message),
			Why:     unusable(o)}
		f.Fix, f.Command = v.remedyOf(o, policy.Reason(c.Reason), c.Message)
		add(f)
	}
}

// invalid finds stored resources that this version's schema refuses: the cluster's CRDs have
// or had another version. The condition Ready may not say so, because an API server may also
// refuse the status of such an object.
func invalid(v *view, add func(resource.Finding)) {
	for _, o := range v.Resources {
		if err := v.refusals()[resource.RefOf(o)]; err != nil {
			why := unusable(o)
			if kind := strings.TrimPrefix(targetOf(o).Kind, "Cluster"); kind == v1beta1.KindVerificationPolicy && why == dependents {
				why = "every image of the namespaces that it applies to is denied"
			}
			add(resource.Finding{ID: ResourceInvalid, Severity: resource.Error, Object: resource.RefOf(o),
				Message: resource.RefusedBySchema + err.Error(),
				Why:     why, Command: targetOf(o).edit()})
		}
	}
}

// refusalsOf returns why schemas refuse resources.
func refusalsOf(resources []v1beta1.Object, schemas resource.Schemas) map[policy.ObjectRef]error {
	refused := map[policy.ObjectRef]error{}
	for _, o := range resources {
		refused[resource.RefOf(o)] = schemas.Refuses(context.Background(), o)
	}
	return refused
}

func notEffective(v *view, add func(resource.Finding)) {
	for _, o := range v.Resources {
		c := resource.Lacks(o, v1beta1.ConditionEffective)
		if c == nil {
			continue
		}
		f := resource.Finding{Object: resource.RefOf(o), Message: fmt.Sprintf("it is not effective: %s: %s", c.Reason, c.Message)}
		switch policy.Reason(c.Reason) {
		case policy.ReasonUnsatisfiable:
			f.ID, f.Severity, f.Why, f.Command = ResourceUnsatisfiable, resource.Error, "every image that it matches is denied", targetOf(o).edit()
		case policy.ReasonUnused, policy.ReasonAppliesNowhere:
			if _, quota := o.(*v1beta1.ClusterQuota); quota { // it names what it is for
				f.ID, f.Severity, f.Why, f.Command = ResourceUnused, resource.Note, "whoever it is for has the default quota", targetOf(o).edit()
				break
			}
			if x, exception := o.(*v1beta1.ClusterException); exception && policy.Reason(c.Reason) == policy.ReasonAppliesNowhere {
				f.ID, f.Severity, f.Why, f.Command = ResourceUnused, resource.Note, "it excepts no image", targetOf(o).edit()
				f.Fix = v.nearNamespace(x.Spec.Namespaces)
				break
			}
			if o.GetNamespace() == "" {
				continue // the next namespace may need it
			}
			f.ID, f.Severity, f.Why, f.Command = ResourceUnused, resource.Note,
				"it has no effect, which its author may not know; deleting it changes no verdict", "kubectl delete "+targetOf(o).String()
			if names, field, by := v.misspelt(o); by != nil {
				f.Why = fmt.Sprintf("%s of %s names Verifier %s, which the namespace does not have", field, resource.RefOf(by), names)
				f.Fix, f.Command = fmt.Sprintf("if the policy means %s, correct the name in %s", o.GetName(), resource.RefOf(by)), targetOf(by).edit()
			} else if why := v.needed(o); why != "" {
				f.Why, f.Command = "it has no effect, which its author may not know; but "+why, targetOf(o).edit()
			}
		case policy.ReasonMandatoryHolds:
			f.ID, f.Severity, f.Why, f.Command = ResourceUnused, resource.Note, "its images are denied all the same", targetOf(o).edit()
		default:
			continue
		}
		add(f)
	}
}

// nearNamespace names a similar existing namespace for the first of the names that does not exist, "" if there is
// none.
func (v *view) nearNamespace(names []string) string {
	var all []string
	for i := range v.Namespaces {
		all = append(all, v.Namespaces[i].Name)
	}
	for _, name := range names {
		if near, ok := policy.Nearest(name, all); ok {
			return fmt.Sprintf("if %s means %s, correct the name", name, near)
		}
	}
	return ""
}

// Review returns everything that needs a review in all resources of a cluster.
type Review func(all, of []v1beta1.Object) map[policy.ObjectRef][]resource.Finding

// needReview finds what resources allow although their authors may not know it. The condition has one
// reason, so it reviews resources with the condition again.
func needReview(v *view, add func(resource.Finding)) {
	var of []v1beta1.Object
	said := map[policy.ObjectRef]resource.Finding{}
	for _, o := range v.Resources {
		c := meta.FindStatusCondition(o.CommonStatus().Conditions, v1beta1.ConditionNeedsReview)
		if c == nil || c.Status != metav1.ConditionTrue || !resource.NeedsReview(policy.Reason(c.Reason)) || expired(o, v.Now) {
			continue
		}
		of = append(of, o)
		fix, message := resource.SplitReview(c.Message)
		said[resource.RefOf(o)] = resource.Finding{ID: c.Reason, Severity: resource.ReviewSeverity(resource.RefOf(o), policy.Reason(c.Reason)),
			Object: resource.RefOf(o), Message: message, Fix: fix}
	}
	judged := map[policy.ObjectRef][]resource.Finding{}
	if v.Review != nil && len(of) > 0 {
		judged = v.Review(v.Resources, of)
	}
	for _, o := range of {
		condition := said[resource.RefOf(o)]
		all := judged[condition.Object]
		if !slices.ContainsFunc(all, func(f resource.Finding) bool { return f.ID == condition.ID }) {
			all = append(all, condition) // another version of Landwaiter may know more
		}
		for _, f := range all {
			f.Why, f.Fix, f.Command = withoutReview(policy.Reason(f.ID)), policy.Shown(f.Fix, maxFix), targetOf(o).edit()
			add(f)
		}
	}
}

// expired reports whether an exception has expired: it allows nothing, whatever its conditions say.
func expired(o v1beta1.Object, now time.Time) bool {
	text := ""
	switch o := o.(type) {
	case *v1beta1.Exception:
		text = o.Spec.Until
	case *v1beta1.ClusterException:
		text = o.Spec.Until
	}
	until, err := time.Parse(time.RFC3339, text)
	return err == nil && !now.Before(until)
}

// withoutReview describes the consequence if a resource is not reviewed.
func withoutReview(reason policy.Reason) string {
	switch reason {
	case policy.ReasonIdentityMatchesNobody:
		return "no signature counts by it"
	case policy.ReasonRuleNeverReached:
		return "what the rule says of its images does not hold"
	case policy.ReasonPlaceholder:
		return "it is for nobody of yours"
	}
	return "images that nobody meant to allow can run"
}

// takesPart reports whether a resource decides, or denies because it is broken.
func takesPart(o v1beta1.Object) bool {
	c := resource.Lacks(o, v1beta1.ConditionEffective)
	return c == nil || c.Reason == string(policy.ReasonDenies)
}

// misspelt returns the name, field and policy that most likely mean a namespace's Verifier: no Verifier of the
// namespace has the name, and this one's is the nearest.
func (v *view) misspelt(o v1beta1.Object) (name, field string, by v1beta1.Object) {
	if _, ok := o.(*v1beta1.Verifier); !ok {
		return "", "", nil
	}
	var names []string
	for _, other := range v.Resources {
		if _, ok := other.(*v1beta1.Verifier); ok && other.GetNamespace() == o.GetNamespace() {
			names = append(names, other.GetName())
		}
	}
	for _, other := range v.Resources {
		judges, ok := other.(*v1beta1.VerificationPolicy)
		if !ok || other.GetNamespace() != o.GetNamespace() {
			continue
		}
		for _, f := range resource.FieldsOfPolicy(judges.Spec) {
			if near, ok := policy.Nearest(f.Name, names); ok && near == o.GetName() && !slices.Contains(names, f.Name) {
				return f.Name, f.Path, other
			}
		}
	}
	return "", "", nil
}

// needed says what deleting an unused resource of a namespace may change, "" if nothing.
func (v *view) needed(o v1beta1.Object) string {
	if slices.ContainsFunc(v.Resources, func(other v1beta1.Object) bool {
		t, ok := other.(*v1beta1.Tenant)
		return ok && t.Spec.HomeNamespace == o.GetNamespace()
	}) {
		return "the next namespace of its Tenant may need it"
	}
	var verifiers []v1beta1.Object
	for _, other := range v.Resources {
		if _, ok := other.(*v1beta1.Verifier); ok && other.GetNamespace() == o.GetNamespace() && other.GetName() != o.GetName() {
			verifiers = append(verifiers, other)
		}
	}
	switch o.(type) {
	case *v1beta1.TrustStore:
		if slices.ContainsFunc(verifiers, func(other v1beta1.Object) bool { return resource.Lacks(other, v1beta1.ConditionReady) != nil }) {
			return "a Verifier that is not Ready may name it"
		}
		return ""
	case *v1beta1.Verifier:
		if slices.ContainsFunc(v.Resources, func(other v1beta1.Object) bool {
			_, judges := other.(*v1beta1.VerificationPolicy)
			return judges && other.GetNamespace() == o.GetNamespace() && resource.Lacks(other, v1beta1.ConditionReady) != nil
		}) {
			return "a VerificationPolicy that is not Ready may require it"
		}
		if slices.ContainsFunc(verifiers, func(other v1beta1.Object) bool { return takesPart(other) }) {
			return ""
		}
		return "without the last Verifier of a namespace, ClusterVerifiers apply there"
	}
	return "the namespace's next resource may need it"
}

// ends finds keys, certificates and roots that expire within their notice.
func ends(v *view, add func(resource.Finding)) {
	for _, o := range v.Resources {
		c := meta.FindStatusCondition(o.CommonStatus().Conditions, v1beta1.ConditionExpiresSoon)
		if c == nil || c.Status != metav1.ConditionTrue {
			continue
		}
		f := resource.Finding{ID: TrustEnds, Severity: resource.Warning, Object: resource.RefOf(o),
			Message: fmt.Sprintf("%s: %s", c.Reason, c.Message),
			Why:     "signatures that depend on it become invalid", Command: targetOf(o).edit()}
		if c.Reason == string(policy.ReasonExpired) {
			f.Severity = resource.Error
		}
		if command := v.renewal(o); command != "" {
			f.Command, f.Keep = command, "new.pem contains the next certificates, and those that older signatures still need"
		}
		add(f)
	}
}

// trustOf returns the spec of a TrustStore or ClusterTrustStore, nil for others.
func trustOf(o v1beta1.Object) *v1beta1.TrustStoreSpec {
	switch o := o.(type) {
	case *v1beta1.TrustStore:
		return &o.Spec
	case *v1beta1.ClusterTrustStore:
		return &o.Spec
	}
	return nil
}

// withFile returns a command that prints JSON with the content of the file new.pem, as a
// text, between before and after.
func withFile(before, after string) string {
	return "kubectl create configmap new --from-file=new.pem --dry-run=client --output=go-template=" +
		resource.ShellWord(before+`{{printf "%q" (index .data "new.pem")}}`+after)
}

// renewal returns the command that replaces the trust material of a trust store by the content of
// new.pem.
func (v *view) renewal(o v1beta1.Object) string {
	spec := trustOf(o)
	if spec == nil {
		return ""
	}
	namespace := cmp.Or(o.GetNamespace(), v.serve.last("cluster-resource-namespace", v.Namespace))
	var into target
	var before, after, key string
	switch source := spec.Source; {
	case source.Inline != "":
		into, before, after = targetOf(o), `{"spec":{"source":{"inline":`, `}}}`
	case source.SecretKeyRef != nil:
		into, before, key = builtin("Secret", namespace, source.SecretKeyRef.Name), "stringData", source.SecretKeyRef.Key
	case source.ConfigMapKeyRef != nil:
		into, before, key = builtin("ConfigMap", namespace, source.ConfigMapKeyRef.Name), "data", source.ConfigMapKeyRef.Key
	default:
		return ""
	}
	if after == "" {
		if !isKey(key) {
			return ""
		}
		before, after = fmt.Sprintf(`{%q:{%q:`, before, key), `}}`
	}
	return withFile(before, after) + " | kubectl patch " + into.String() + " --type=merge --patch-file=/dev/stdin"
}

// RevocationHostNotAllowed is the finding about a Verifier that checks revocation at a host
// that Landwaiter may not contact.
const RevocationHostNotAllowed = "RevocationHostNotAllowed"

// egressFlag lists the allowed hosts.
const egressFlag = "egress-host"
