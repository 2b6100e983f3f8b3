package check

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about how Landwaiter is installed.
const (
	NoLandwaiter  = "NoLandwaiter"
	NoReplicas    = "NoReplicas"
	SingleReplica = "SingleReplica"
	NoClientAuth  = "NoClientAuth"
	CRDsMissing   = "CRDsMissing"
	VersionSkew   = "VersionSkew"
	LeaseStale    = "LeaseStale"
)

// upgrade returns the command that changes a value of the chart.
func (v *view) upgrade(values ...string) string {
	return upgrade(types.NamespacedName{Namespace: v.Namespace, Name: v.fullname()}, values...)
}

func upgrade(release types.NamespacedName, values ...string) string {
	text := fmt.Sprintf("helm upgrade %s charts/landwaiter --install --namespace %s --reset-then-reuse-values",
		resource.ShellWord(release.Name), resource.ShellWord(release.Namespace))
	for _, value := range values {
		text += " --set " + resource.ShellWord(value)
	}
	return text
}

// unanswered is the consequence of having no replica.
const unanswered = "nothing answers Gatekeeper, so every new pod is denied where a constraint denies"

func deployment(v *view, add func(resource.Finding)) {
	p := v.serve
	if p == nil {
		add(resource.Finding{ID: NoLandwaiter, Severity: resource.Error, Object: policy.ObjectRef{Kind: "Namespace", Name: v.Namespace},
			Message: "no Deployment in it runs landwaiter-server serve",
			Why:     unanswered, Command: v.upgrade(), Keep: "if it runs in another namespace, use --landwaiter-account"})
		return
	}
	switch {
	case p.replicas == 0:
		add(resource.Finding{ID: NoReplicas, Severity: resource.Error, Object: p.ObjectRef, Message: "it has 0 replicas",
			Why: unanswered, Command: "kubectl scale " + p.String() + " --replicas=2", Keep: "the chart's value replicas: 2"})
	case p.known && p.ready == 0:
		add(resource.Finding{ID: NoReplicas, Severity: resource.Error, Object: p.ObjectRef,
			Message: fmt.Sprintf("none of its %d replicas is ready", p.replicas),
			Why:     unanswered, Command: v.onServe("rollout restart"), Keep: "if the pods fail again, find the cause with kubectl describe pods " +
				"and kubectl logs"})
	case p.replicas < 2:
		add(resource.Finding{ID: SingleReplica, Severity: resource.Warning, Object: p.ObjectRef,
			Message: fmt.Sprintf("it has %d replicas", p.replicas),
			Why:     "no pod can be created while this replica restarts or moves", Command: "kubectl scale " + p.String() + " --replicas=2",
			Keep: "the chart's value replicas: 2"})
	}
	if open, err := strconv.ParseBool(p.last("insecure-no-client-auth", "false")); open || err != nil {
		ns := v.gatekeeperNamespace()
		all := p.flags("insecure-no-client-auth")
		use := all[len(all)-1] // the last one counts
		operations := p.inPlace(use.index, "--insecure-no-client-auth=false")
		if len(p.flags("client-ca")) == 0 {
			operations = append(operations, p.added("--client-ca=secret/"+ns+"/gatekeeper-webhook-server-cert"),
				p.added("--client-name=gatekeeper-webhook-service."+ns+".svc"))
		}
		add(resource.Finding{ID: NoClientAuth, Severity: resource.Warning, Object: p.ObjectRef,
			Message: "it answers any client, without a client certificate",
			Why:     "anyone who can reach its port can send requests for any namespace, and use up its quota", Command: p.patch(operations...),
			Keep: "the chart's values clientCA.insecureNoClientAuth: false and clientCA.secrets"})
	}
}

func definitions(v *view, add func(resource.Finding)) {
	var missing []string
	for _, kind := range v1beta1.Kinds() {
		name := kind.Plural + "." + v1beta1.Group
		if !slices.ContainsFunc(v.Definitions, func(d metav1.PartialObjectMetadata) bool { return d.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		add(resource.Finding{ID: CRDsMissing, Severity: resource.Error,
			Object: policy.ObjectRef{Kind: "CustomResourceDefinition", Name: missing[0]}, Message: "missing: " + named(missing),
			Why:     "until all its kinds exist, Landwaiter does not answer, and images are denied",
			Command: "kubectl apply --server-side --force-conflicts --kustomize=config/crd", Keep: "the chart's value crds.install: true"})
	}
	if v.serve == nil || v.serve.version == "" {
		return
	}
	for _, d := range v.Definitions {
		if version := d.Labels["app.kubernetes.io/version"]; version != "" && version != v.serve.version {
			add(resource.Finding{ID: VersionSkew, Severity: resource.Warning,
				Object:  policy.ObjectRef{Kind: "CustomResourceDefinition", Name: d.Name},
				Message: fmt.Sprintf("it has version %s, and the Deployment has %s", version, v.serve.version),
				Why:     "fields that only one of them has are dropped or ignored", Command: v.upgrade("crds.install=true"),
				Keep: "the chart's value crds.install: true"})
			return
		}
	}
}

// lease finds that nobody writes statuses, certificates and reports.
func lease(v *view, add func(resource.Finding)) {
	if v.serve == nil || v.serve.last("leader-elect", "true") == "false" {
		return
	}
	f := resource.Finding{ID: LeaseStale, Severity: resource.Error,
		Object:  policy.ObjectRef{Kind: "Lease", Namespace: v.Namespace, Name: leaseName},
		Why:     "no replica writes statuses or renews certificates, so conditions may be out of date",
		Command: "kubectl rollout restart " + v.serve.String()}
	switch {
	case v.Lease == nil:
		f.Message = "it does not exist"
	case !v.leaseHeld():
		f.Message = "no replica has renewed it for more than " + leaseGrace.String()
		if v.Lease.Spec.RenewTime != nil {
			f.Message += ", last at " + v.Lease.Spec.RenewTime.UTC().Format(time.RFC3339)
		}
	default:
		return
	}
	add(f)
}

// leaseHeld reports whether a replica writes.
func (v *view) leaseHeld() bool { return held(v.Lease, v.Now) }

// held reports whether a process has recently renewed a lease.
func held(lease *coordinationv1.Lease, now time.Time) bool {
	return lease != nil && lease.Spec.RenewTime != nil && now.Sub(lease.Spec.RenewTime.Time) <= leaseGrace
}
