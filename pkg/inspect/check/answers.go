package check

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/constraint"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// NoAnswer is the finding about a server that does not answer where Gatekeeper asks it.
const NoAnswer = "NoAnswer"

// Place is an address at which Gatekeeper asks Landwaiter.
type Place struct {
	// Host is the host and port in the URL of a Provider.
	Host string
	// Service is the Service that Host names, which is reached through the API server; zero for any
	// other host.
	Service types.NamespacedName
	Port    string
}

// Answers are the results of requests to a Place. Requests that are not counted could not be
// sent.
type Answers struct {
	Place
	Asked    int
	Answered int
	Refused  int // nothing listens, or the Service has no endpoint
	Silent   int // no answer within Within
	// Why is why a request could not be sent, or was refused.
	Why    string
	Within time.Duration
	// Renewed says that a replica has renewed the Lease while nothing answered, and Lapsed that it
	// has not been renewed. Both are false if that is unknown.
	Renewed, Lapsed bool
}

// places returns the addresses in the Providers that constraints name. It omits a Service without a
// ready replica, which is another finding.
func (v *view) places() []Place {
	var all []Place
	for _, p := range v.ours() {
		host, port, err := net.SplitHostPort(p.host())
		if !p.verifies || err != nil {
			continue
		}
		place := Place{Host: p.host(), Port: port}
		if parts := strings.Split(host, "."); len(parts) > 2 && parts[2] == "svc" {
			if v.serve == nil || v.serve.replicas == 0 || v.serve.known && v.serve.ready == 0 {
				continue
			}
			place.Service = types.NamespacedName{Namespace: parts[1], Name: parts[0]}
		}
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all
}

// host returns the host and port of a Provider's URL, "" if it is not an https URL.
func (p provider) host() string {
	parsed, err := url.Parse(p.url)
	if err != nil || parsed.Scheme != "https" || parsed.Hostname() == "" {
		return ""
	}
	return net.JoinHostPort(parsed.Hostname(), cmp.Or(parsed.Port(), "443"))
}

// requests returns the number of requests to send to a place, so that one hanging replica among
// several is detected: each request reaches any of them.
func (v *view) requests() int {
	if v.serve == nil || v.serve.replicas < 2 {
		return 1
	}
	return min(requestsEach*int(v.serve.replicas), maxRequests)
}

// unheard reports whether a place answered nothing, and whether that is known to be the server's fault:
// from here, a network that drops requests looks the same. If a replica renews the Lease, it runs.
// Behind a Service, only a Lease that nobody renews is proof.
func (a Answers) unheard() (silent, known bool) {
	silent = a.Answered == 0 && a.Asked > 0
	failed := a.Refused + a.Silent
	direct := a.Service == types.NamespacedName{} || a.Refused > 0
	return silent, failed > 0 && !a.Renewed && (a.Lapsed || direct)
}

func noAnswer(v *view, add func(resource.Finding)) {
	for _, a := range v.Answers {
		silent, known := a.unheard()
		failed := a.Refused + a.Silent
		if failed == 0 || silent && !known {
			continue
		}
		f := resource.Finding{ID: NoAnswer, Severity: resource.Error, Object: policy.ObjectRef{Kind: "Namespace", Name: v.Namespace},
			Command: v.onServe("rollout restart"),
			Keep:    "if it happens again, find the cause with kubectl describe pods and kubectl logs --previous"}
		if v.serve != nil {
			f.Object = v.serve.ObjectRef
		}
		switch {
		case !silent:
			f.Message = fmt.Sprintf("%d of %d requests to %s got no answer within %s, so a replica does not answer", failed, a.Asked,
				a.Host, a.Within)
			if v.serve != nil {
				f.Message = fmt.Sprintf("%d of %d requests to %s got no answer within %s: not all of its %d replicas answer", failed, a.Asked, a.Host,
					a.Within, v.serve.replicas)
			}
			f.Why = "a share of new pods is delayed, and then " + v.without(a)
		case a.Silent == 0:
			f.Message, f.Why = fmt.Sprintf("nothing answers at %s: %s", a.Host, a.Why), "every new pod is "+v.without(a)
		default:
			f.Message, f.Why = fmt.Sprintf("nothing answers at %s within %s, though something accepts connections", a.Host, a.Within),
				"every new pod is "+v.without(a)
			if a.Service != (types.NamespacedName{}) {
				f.Message = fmt.Sprintf("nothing answers at %s within %s", a.Host, a.Within)
			}
		}
		add(f)
	}
}

// without says what happens to a pod about which Landwaiter does not answer.
func (v *view) without(a Answers) string {
	hooks := slices.DeleteFunc(v.asked(), func(h hook) bool { return h.mutating })
	if len(hooks) == 0 || !v.denies(a.Host) {
		return "admitted unverified, because nothing denies"
	}
	wait := 0
	for _, p := range v.ours() {
		if p.host() == a.Host {
			wait = max(wait, p.seconds)
		}
	}
	for _, h := range hooks {
		seconds := defaultWebhookSeconds
		if h.webhook.TimeoutSeconds != nil {
			seconds = int(*h.webhook.TimeoutSeconds)
		}
		if open := h.webhook.FailurePolicy != nil && *h.webhook.FailurePolicy == admissionv1.Ignore; open && a.Silent > 0 && seconds <= wait {
			return "admitted unverified, because the webhook has failurePolicy Ignore and gives up before Gatekeeper"
		}
	}
	return "refused where a constraint denies"
}

// denies reports whether a constraint denies images about which the Provider at a host does
// not answer.
func (v *view) denies(host string) bool {
	return slices.ContainsFunc(v.ours(), func(p provider) bool {
		return p.host() == host && slices.ContainsFunc(v.Constraints, func(c unstructured.Unstructured) bool {
			return constraint.ModeOf(&c) == constraint.Deny && constraintProviders(&c)[0] == p.Name
		})
	})
}

// unheardOf says where the result is unknown: requests did not arrive, or a replica runs.
func unheardOf(v *view) []resource.Unchecked {
	var all []resource.Unchecked
	for _, a := range v.Answers {
		silent, known := a.unheard()
		if !silent || known {
			continue
		}
		u := resource.Unchecked{IDs: []string{NoAnswer}, Unpublished: true}
		switch {
		case a.Renewed:
			u.Why = fmt.Sprintf("you get no answer from %s, but a replica renews its Lease: a firewall or NetworkPolicy can be in between", a.Host)
		case a.Service != types.NamespacedName{}:
			u.Why = fmt.Sprintf("the API server gets no answer from %s: a firewall or NetworkPolicy can be in between", a.Host)
		default:
			u.Why = fmt.Sprintf("you cannot reach %s from here", a.Host)
		}
		if a.Why != "" {
			u.Why += ": " + Shown(a.Why)
		}
		all = append(all, u)
	}
	return all
}
