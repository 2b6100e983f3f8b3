package precedence

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// key is the public key of every TrustStore: what Verifiers find is told by [World.Evidence].
const key = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE12moKp5Rvp/GMX7bArHDGhQqxCHQ
HwLcN2KPth/bat7zOvaiSWP3CsuW7gnDvDJdLWg91zveu9r2W8hbOkG1bA==
-----END PUBLIC KEY-----
`

// objects writes a world as resources.
func (w World) objects() resource.Objects { return w.objectsWith(verifierSpec) }

// objectsWith is objects with other Verifiers.
func (w World) objectsWith(spec func(Verifier) v1beta1.VerifierSpec) resource.Objects {
	o := &resources{created: metav1.NewTime(w.Now.Add(-time.Hour)), spec: spec}
	o.level(w.Cluster)
	for _, level := range w.Namespaces {
		o.level(level)
		o.namespace(level)
	}
	for i, t := range w.Tenants {
		made := &v1beta1.Tenant{ObjectMeta: o.meta("", t.Name)}
		made.CreationTimestamp = metav1.NewTime(w.Now.Add(time.Duration(i-100) * time.Hour))
		made.Spec.HomeNamespace, made.Spec.Namespaces, made.Spec.NamespacePrefix = t.HomeNamespace, t.Namespaces, t.Prefix
		made.Spec.Verification.PolicyLevel = v1beta1.PolicyLevel(t.PolicyLevel)
		o.add(made, t.Unreadable)
	}
	return o.Objects
}

type resources struct {
	resource.Objects
	created metav1.Time
	spec    func(Verifier) v1beta1.VerifierSpec
}

func (o *resources) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: o.created}
}

func (o *resources) add(object v1beta1.Object, unreadable bool) {
	if unreadable {
		o.Broken = append(o.Broken, resource.Broken{Source: resource.RefOf(object), Reason: policy.ReasonUnreadable, Err: errors.New("it cannot be read")})
		return
	}
	o.Resources = append(o.Resources, object)
}

func (o *resources) namespace(l Level) {
	if l.Unreadable {
		o.Broken = append(o.Broken, resource.Broken{Source: policy.ObjectRef{Kind: "Namespace", Name: l.Name}, Err: errors.New("it cannot be read")})
		return
	}
	n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.Name, UID: types.UID("of " + l.Name)}}
	if l.Ending {
		n.DeletionTimestamp = &o.created
	}
	if g := l.BreakGlass; g != nil {
		n.Annotations = map[string]string{v1beta1.AnnotationBreakGlassFrom: g.From.Format(time.RFC3339),
			v1beta1.AnnotationBreakGlassUntil:  g.Until.Format(time.RFC3339),
			v1beta1.AnnotationBreakGlassReason: "an outage", v1beta1.AnnotationBreakGlassOverrideMandatory: fmt.Sprint(g.OverrideMandatory)}
	}
	o.Namespaces = append(o.Namespaces, n)
}

func (o *resources) level(l Level) {
	twin := func(namespaced, cluster v1beta1.Object) v1beta1.Object {
		if l.Name == "" {
			return cluster
		}
		return namespaced
	}
	trust, shared := &v1beta1.TrustStore{ObjectMeta: o.meta(l.Name, "key")}, &v1beta1.ClusterTrustStore{ObjectMeta: o.meta("", "key")}
	trust.Spec.Type, trust.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, key
	shared.Spec.Type, shared.Spec.Source.Inline = v1beta1.TrustStoreTypePublicKeys, key
	o.add(twin(trust, shared), false)
	for _, v := range l.Verifiers {
		o.add(twin(&v1beta1.Verifier{ObjectMeta: o.meta(l.Name, v.Name), Spec: o.spec(v)}, &v1beta1.ClusterVerifier{ObjectMeta: o.meta("", v.Name), Spec: o.spec(v)}),
			v.Type == "")
	}
	for i, p := range l.Policies {
		name, spec := fmt.Sprintf("policy-%d", i), policySpec(p)
		cluster := &v1beta1.ClusterVerificationPolicy{ObjectMeta: o.meta("", name)}
		cluster.Spec = spec
		if p.Mandatory {
			cluster.Spec.Scope = v1beta1.PolicyScopeMandatory
		}
		o.add(twin(&v1beta1.VerificationPolicy{ObjectMeta: o.meta(l.Name, name), Spec: spec}, cluster), len(p.Rules) == 0)
	}
	if s := l.Store; s != nil {
		named, cluster := &v1beta1.Store{ObjectMeta: o.meta(l.Name, "store")}, &v1beta1.ClusterStore{ObjectMeta: o.meta("", "store")}
		named.Spec.Registries, cluster.Spec.Registries = []string{s.Host}, []string{s.Host}
		if s.Broken {
			named.Spec.ImagePullSecrets = []v1beta1.Reference{{Name: "missing"}}
			cluster.Spec.ImagePullSecrets = []v1beta1.Reference{{Name: "missing"}}
		}
		if s.Evidence != "" {
			named.Spec.Evidence = &v1beta1.Evidence{Exclusive: true, Repositories: []v1beta1.EvidenceRepository{{Repository: hostA + "/" + s.Evidence}}}
			cluster.Spec.Evidence = named.Spec.Evidence
		}
		o.add(twin(named, cluster), s.Host == "")
	}
	for i, x := range l.Exceptions {
		o.exception(l.Name, fmt.Sprintf("exception-%d", i), x)
	}
}

func verifierSpec(v Verifier) v1beta1.VerifierSpec {
	ref := []v1beta1.TrustStoreRef{{Name: "key"}}
	if v.Broken {
		ref[0].Name = "missing"
	}
	spec := v1beta1.VerifierSpec{Images: v.Images, Type: v1beta1.VerifierType(v.Type)}
	signers := v1beta1.Signers{Keys: &v1beta1.Keys{TrustStoreRefs: ref, TransparencyLog: v1beta1.TransparencyLog{InsecureIgnoreTransparencyLog: true}}}
	if v.Type == "Attestation" {
		spec.Type, spec.Attestation = v1beta1.VerifierTypeAttestation, &v1beta1.AttestationVerifier{Signers: signers, PredicateType: "https://example.com"}
		return spec
	}
	spec.Type, spec.Cosign = v1beta1.VerifierTypeCosign, &v1beta1.CosignVerifier{Signers: signers}
	return spec
}

func policySpec(p Policy) v1beta1.VerificationPolicySpec {
	spec := v1beta1.VerificationPolicySpec{DefaultAction: v1beta1.DefaultAction(p.Default)}
	if p.Warns {
		spec.EnforcementAction = v1beta1.EnforcementActionWarn
	}
	for _, r := range p.Rules {
		rule := v1beta1.PolicyRule{Images: r.Images, Action: v1beta1.RuleAction(r.Action)}
		for _, q := range r.Require {
			atLeast := int32(q.AtLeast)
			made := v1beta1.Requirement{AnyOf: q.AnyOf, AllOf: q.AllOf, AtLeast: &atLeast}
			for _, t := range q.Types {
				made.Types = append(made.Types, v1beta1.VerifierType(t))
			}
			switch {
			case q.Exists != "":
				made.Expression = fmt.Sprintf("findings.exists(f, f.verifier == %q)", q.Exists)
			case q.ExistsNot != "":
				made.Expression = fmt.Sprintf("!findings.exists(f, f.verifier == %q)", q.ExistsNot)
			}
			rule.Require = append(rule.Require, made)
		}
		spec.Rules = append(spec.Rules, rule)
	}
	if p.Broken {
		spec.Rules = append(spec.Rules, v1beta1.PolicyRule{Images: []string{"not a pattern"}, Action: v1beta1.RuleActionAllow})
	}
	return spec
}

func (o *resources) exception(namespace, name string, x Exception) {
	spec := v1beta1.ExceptionSpec{Until: x.Until.Format(time.RFC3339), Reason: "a test", Images: x.Images}
	if namespace != "" {
		o.add(&v1beta1.Exception{ObjectMeta: o.meta(namespace, name), Spec: spec}, false)
		return
	}
	made := &v1beta1.ClusterException{ObjectMeta: o.meta("", name), Spec: spec}
	made.Spec.Namespaces, made.Spec.OverrideMandatory = x.Namespaces, x.OverrideMandatory
	if x.Delegates {
		made.Spec.Images, made.Spec.Namespaces = nil, nil
		made.Spec.Delegate = &v1beta1.ExceptionDelegation{Images: x.Images, Namespaces: x.Namespaces, Tenants: x.Tenants}
	}
	o.add(made, false)
}
