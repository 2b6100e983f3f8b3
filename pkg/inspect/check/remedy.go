package check

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// grantable is the end of Landwaiter's message about an object that it may not read.
const grantable = "grant it with: kubectl create rolebinding "

// remedyOf says what to do about a resource that is not Ready, in words, and as a command if possible. It only
// suggests editing the resource if the resource itself may be wrong.
func (v *view) remedyOf(o v1beta1.Object, reason policy.Reason, message string) (fix, command string) {
	switch reason {
	case policy.ReasonNotFound:
		return "create what the message names, or correct the reference", targetOf(o).edit()
	case policy.ReasonReferenceNotReady:
		return "correct the resource that the message names", ""
	case policy.ReasonUnreadable:
		return "wait a minute, because Landwaiter tries again; if it stays, check that what the message names answers, and that Landwaiter's " +
			"pods can reach it", ""
	case policy.ReasonPending:
		return "wait a minute; if it stays, read the logs of Landwaiter's pods", ""
	case policy.ReasonNotDelegated:
		return "ask a cluster admin for a ClusterException that delegates these images to the namespace", ""
	case policy.ReasonAccessDenied:
		if v.serve == nil || o.GetNamespace() == "" || !strings.Contains(message, grantable) {
			return "give Landwaiter, or the login that it uses, the permission that the message names", ""
		}
		// The command comes from the installation, not from the message, which anybody may have
		// chosen.
		role := v.serve.named("cluster-role", "reference-reader", "landwaiter-reference-reader")
		return "", fmt.Sprintf("kubectl create rolebinding %s --namespace=%s --clusterrole=%s --serviceaccount=%s", resource.ShellWord(role),
			resource.ShellWord(o.GetNamespace()), resource.ShellWord(role), resource.ShellWord(v.Namespace+":"+v.serve.account))
	default:
		return "", targetOf(o).edit()
	}
}
