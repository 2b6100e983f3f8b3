package verify

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/formats/image"
)

// absent returns the finding of a verifier if subject has no evidence of its kind: what is missing, where it was
// looked for, and the command that creates it. None of the listed manifests that refer to subject was of that kind.
func (v *Verifier) absent(subject image.Reference, listed int) policy.Finding {
	what, kind, tag := "signature", strings.ToLower(v.Type)+" signature", ""
	switch v.Type {
	case "Cosign":
		tag = "sig"
	case "Attestation":
		what, kind, tag = "attestation", "attestation", "att"
	case "":
		kind = what
	}
	command, fix, looked := v.makes(subject), v.SignAs, "the referrers of this digest"
	if command == "" && fix == "" {
		fix = fmt.Sprintf("make one for %s@%s", subject.Name(), subject.Digest)
	}
	if tag != "" { // shortened, because the command has the whole digest
		looked = fmt.Sprintf("the tag %s-%.12s….%s and %s", subject.Digest.Algorithm(), subject.Digest.Encoded(), tag, looked)
	}
	if listed > 0 {
		what, looked = kind, fmt.Sprintf("%s, which has %d of another kind", looked, listed)
	}
	return v.finding(policy.Finding{Reason: policy.ReasonNoEvidence, Remediation: fix, Command: command,
		Message: fmt.Sprintf("no %s was found (looked at %s)", what, looked)})
}

// makes returns the command that creates evidence of v for subject, "" if none is known.
func (v *Verifier) makes(subject image.Reference) string {
	if v.Command == "" {
		return ""
	}
	return fmt.Sprintf("%s %s@%s", v.Command, subject.Name(), subject.Digest)
}

// withCommand adds to f who signs, and the command that creates the evidence that v wants, if that fixes f. The
// command has all options: without them it might publish the evidence.
func (v *Verifier) withCommand(f policy.Finding, subject image.Reference) policy.Finding {
	if f.Result() != policy.Invalid || f.Remediation == "" {
		return f
	}
	switch f.Reason {
	case policy.ReasonKeyed, policy.ReasonWrongIdentity:
		if v.SignAs != "" {
			f.Remediation = v.SignAs + "; " + f.Remediation
		}
	}
	switch f.Reason {
	case policy.ReasonWrongKey, policy.ReasonKeyless, policy.ReasonKeyed, policy.ReasonWrongAnnotations:
		f.Command = v.makes(subject)
	}
	return f
}

// unknown returns the finding for a name that none of the applicable verifiers has. Usually,
// the first Verifier of a namespace hides every ClusterVerifier there.
func (l *Tier) unknown(source policy.ObjectRef, name string) policy.Finding {
	f := policy.Finding{Verifier: name, Reason: policy.ReasonNoSuchVerifier}
	own := l.own()
	nearer := fmt.Sprintf("create a VerificationPolicy in %s that requires its own Verifiers (%s), or a Verifier %s there", own,
		l.names(), name)
	var decides string
	if l.Lenient != (policy.ObjectRef{}) && source.Namespace != own {
		decides = fmt.Sprintf("; %s only warns, so %s decides", l.Lenient, source)
		nearer = l.Lenient.Owner("set enforcementAction of " + l.Lenient.String() + " to Deny, and loosen its rules instead")
	}
	switch {
	case own != "" && own == l.Home && source.Namespace != "" && source.Namespace != own:
		f.Message = fmt.Sprintf("neither %s nor %s, its Tenant's home namespace, has a Verifier %s, and because %s has others, no "+
			"ClusterVerifier applies there", source.Namespace, own, name, own)
		f.Remediation = fmt.Sprintf("require one of the Verifiers of %s (%s), or create Verifier %s there", own, l.names(), name)
	case own != "" && source.Namespace != "" && source.Namespace != own:
		f.Message = fmt.Sprintf("%s has Verifiers of its own, so Verifier %s of %s does not apply there%s", own, name, source.Namespace, decides)
		f.Remediation = nearer
	case own != "" && source.Namespace == "":
		f.Message = fmt.Sprintf("%s has Verifiers of its own, so ClusterVerifier %s does not apply there%s", own, name, decides)
		f.Remediation = nearer
	case own != "" && l.Home != "" && l.Home != own:
		f.Message = fmt.Sprintf("%s has no Verifier %s, and because it has others, neither the Verifiers of %s, its Tenant's home namespace, "+
			"nor ClusterVerifiers apply there", own, name, l.Home)
		f.Remediation = fmt.Sprintf("require one of its Verifiers (%s), create Verifier %s there, or move its Verifiers to %s",
			l.names(), name, l.Home)
	case own != "":
		f.Message = fmt.Sprintf("%s has no Verifier %s, and because it has others, no ClusterVerifier applies there", own, name)
		f.Remediation = fmt.Sprintf("require one of its Verifiers (%s), or create Verifier %s there", l.names(), name)
	case source.Namespace == "":
		f.Message = fmt.Sprintf("there is no ClusterVerifier %s", name)
		f.Remediation = "ask a cluster admin to create it, or to correct the name in the policy"
	default:
		f.Message = fmt.Sprintf("there is neither a Verifier %s in %s nor a ClusterVerifier of that name", name, source.Namespace)
		f.Remediation = "create the Verifier, or correct the name in the policy"
	}
	return f
}

// own returns the namespace whose Verifiers apply, "" if the cluster's apply.
func (l *Tier) own() string {
	if len(l.Verifiers) == 0 {
		return ""
	}
	return l.Verifiers[0].Source.Namespace
}

// names returns the first names of the applicable verifiers.
func (l *Tier) names() string {
	const most = 3
	var list []string
	for _, v := range l.Verifiers[:min(len(l.Verifiers), most)] {
		list = append(list, v.Source.Name)
	}
	if more := len(l.Verifiers) - most; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// extend says what to do if a policy requires a verifier and none matches the image. A Verifier in the namespace does
// not count for a mandatory policy, and for any other policy of the cluster it hides every ClusterVerifier.
func (l *Tier) extend(policy policy.ObjectRef) string {
	own := l.own()
	switch {
	case own != "":
		return fmt.Sprintf("add the image to spec.images of a Verifier in %s, or create a Verifier for it", own)
	case policy.Namespace == "":
		return policy.Owner("add the image to spec.images of a ClusterVerifier, or to create a ClusterVerifier for it")
	}
	return "create a Verifier for it in the namespace, or ask a cluster admin to add it to a ClusterVerifier"
}

// nothing returns the task of a tier without policies if no verifier matches the image.
func (l *Tier) nothing(ref image.Reference) task {
	t := known(l, policy.Verdict{Reason: fmt.Sprintf("there is no policy, and no Verifier applies to %s", ref.Name()),
		Remediation: "create a Verifier in the namespace whose images match it, or ask a cluster admin for one"})
	t.nothing = true
	return t
}

// withoutNamespace says why an image is denied for which the cluster has no rules, and what to do:
// the caller may have forgotten the namespace, which may have some.
func withoutNamespace(ref image.Reference) (reason, fix string) {
	return fmt.Sprintf("no namespace was given, so only cluster resources apply: there is no ClusterVerificationPolicy, and no "+
			"ClusterVerifier applies to %s", ref.Name()),
		"give the pod's namespace (for commands: add --namespace), or ask a cluster admin for a ClusterVerifier"
}
