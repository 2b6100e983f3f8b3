package check

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// Findings about facts that only the process knows, and publishes.
const (
	RedisUnreachable    = resource.FactRedisUnreachable
	RedisPermissions    = resource.FactRedisPermissions
	RedisEviction       = resource.FactRedisEviction
	ClockSkew           = resource.FactClockSkew
	RegistryUnreachable = resource.FactRegistryUnreachable
	ReferrersMissing    = resource.FactReferrersMissing
)

// factRow explains a bad fact.
type factRow struct {
	id       string
	severity resource.Severity
	why      string
	fix      string // if the command is not sufficient, or missing
	command  func(*view) string
	keep     string
}

// redisCLI returns a command for an administrator of Redis, whose URL is in a variable: it
// reads no Secret.
func redisCLI(line string) func(*view) string {
	return func(*view) string { return `redis-cli -e -u "$REDIS_URL" ` + line }
}

func factRows() []factRow {
	return []factRow{
		{RedisUnreachable, resource.Warning, "replicas share no verdicts: each verifies every image itself, and answers take longer",
			"bring back Redis, or the network from Landwaiter's pods to it", restartRedis,
			"the Secret with the URL of Redis, and the network to it"},
		{RedisPermissions, resource.Warning, "each denied command fails, and the cache helps less", "",
			redisCLI(`ACL SETUSER "$REDIS_USER" '~landwaiter:*' +set +getrange +scan +unlink`),
			"REDIS_USER is the user in Landwaiter's own URL, and REDIS_URL that of an administrator; ACL SAVE keeps it"},
		{RedisEviction, resource.Warning, "a full Redis refuses new entries instead of dropping old ones", "",
			redisCLI("CONFIG SET maxmemory-policy allkeys-lru"), "maxmemory-policy allkeys-lru in the configuration of Redis"},
		{ClockSkew, resource.Warning, "signatures, certificates and exceptions expire too early or too late", "", restartServe,
			"the time service of the pod's node; a restart moves the pod, or shows that the node is fixed"},
		{RegistryUnreachable, resource.Error, "images of this registry are undecided, so pods with them are not admitted", bringBackRegistry, nil,
			"registries, caBundle and proxy of the ClusterStore that lists it, if the registry has moved"},
		{ReferrersMissing, resource.Note, "tools list signatures in the tag sha256-… instead: two that sign an image at the same time can lose " +
			"a signature, and so can a retention rule for tags", "", nil,
			"the tags sha256-… in retention rules, and one signature at a time for each image"},
	}
}

const bringBackRegistry = "bring back the registry, or the network from Landwaiter's pods to it"

// restartRedis returns the command for the chart's Redis, "" for another one.
func restartRedis(v *view) string {
	for _, p := range programs(v.Landwaiters) {
		if p.Name == v.fullname()+"-redis" {
			return "kubectl rollout restart " + p.String()
		}
	}
	return ""
}

// onServe returns the kubectl command for the Deployment of serve, or the command that creates
// it.
func (v *view) onServe(command string) string {
	if v.serve == nil {
		return v.upgrade()
	}
	return "kubectl " + command + " " + v.serve.String()
}

func restartServe(v *view) string { return v.onServe("rollout restart") }

func badFacts(v *view, add func(resource.Finding)) {
	if v.Facts == nil || !v.leaseHeld() {
		return
	}
	for _, row := range factRows() {
		for _, fact := range v.Facts.List {
			if !fact.Bad || string(fact.ID) != row.id {
				continue
			}
			finding := resource.Finding{ID: row.id, Severity: row.severity,
				Object:  policy.ObjectRef{Kind: v1beta1.ReportKind, Namespace: v.Namespace, Name: resource.FactsName},
				Message: fact.Message, Why: row.why, Fix: row.fix, Keep: row.keep}
			if undecided := v.undecidedOf(fact.About, false); undecided.Namespace != "" && row.id == RegistryUnreachable {
				finding.Message += "; " + undecided.String()
				finding.Fix = cmp.Or(undecided.Remedy.At(undecided.Registry), finding.Fix)
			}
			if row.command != nil {
				finding.Command = row.command(v)
			}
			add(finding)
		}
	}
}

// unknownFacts lists the facts that nobody published, about which nothing is known.
func unknownFacts(v *view) []resource.Unchecked {
	if _, unread := v.Unread[SourceFacts]; unread {
		return nil
	}
	var ids []string
	for _, row := range factRows() {
		if v.Facts == nil || !v.leaseHeld() || !slices.ContainsFunc(v.Facts.List, func(f resource.Fact) bool { return string(f.ID) == row.id }) {
			ids = append(ids, row.id)
		}
	}
	switch {
	case len(ids) == 0:
		return nil
	case v.Facts == nil:
		return []resource.Unchecked{
			{IDs: ids, Unpublished: true, Why: "only Landwaiter itself can check this, and it has published no results: set the chart's " +
				"reports.enabled (--reports)"}}
	case !v.leaseHeld():
		return []resource.Unchecked{
			{IDs: ids, Unpublished: true, Why: "Landwaiter's last results are out of date, because no replica holds the Lease: read the " +
				"logs of its pods"}}
	}
	var unchecked []resource.Unchecked
	for _, id := range ids {
		why := v.notPublished(id)
		if last := len(unchecked) - 1; last < 0 || unchecked[last].Why != why {
			unchecked = append(unchecked, resource.Unchecked{Unpublished: true, Why: why})
		}
		of := &unchecked[len(unchecked)-1]
		of.IDs = append(of.IDs, id)
	}
	return unchecked
}

// notPublished explains why the results of a replica lack an ID, and what to do.
func (v *view) notPublished(id string) string {
	redis := slices.IndexFunc(v.Facts.List, func(f resource.Fact) bool { return f.ID == RedisUnreachable })
	switch id {
	case RedisPermissions, RedisEviction:
		switch {
		case redis >= 0 && v.Facts.List[redis].Bad:
			return "Redis does not answer Landwaiter: repair that first, then run check again in a minute"
		case redis >= 0 && id == RedisEviction:
			return "Redis does not tell Landwaiter's user its limit of memory: permit INFO (ACL SETUSER … +info), then run check again in a minute"
		}
		fallthrough
	case RedisUnreachable:
		return "Landwaiter checks this only if it uses Redis (--redis-url), and Redis answers and permits INFO; if so, run check " +
			"again in a minute"
	case RegistryUnreachable:
		return "Landwaiter checks this only for registries that a ClusterStore lists by name; if one does, run check again in a minute"
	case ReferrersMissing:
		return "Landwaiter knows this only of registries that a ClusterStore lists by name, once it has looked for signatures there"
	}
	return "Landwaiter has not checked this yet: run check again in a minute"
}

// facts reads the report of the process.
func (r *reader) facts() {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(v1beta1.ReportGroup + "/" + v1beta1.ReportVersion)
	object.SetKind(v1beta1.ReportKind)
	if err := r.client.Get(r.ctx, client.ObjectKey{Namespace: r.into.Namespace, Name: resource.FactsName}, object); err != nil {
		r.not(SourceFacts, "get reports.openreports.io", r.into.Namespace, err)
		return
	}
	r.into.Facts = resource.ReadFacts(object)
}

// Serve is the configuration of landwaiter-server serve in a cluster, as far as its
// Deployment shows it.
type Serve struct{ program *program }

// ReadServe reads the Deployment in Landwaiter's namespace with the permissions of c. If there
// is none, or if the person may not read it, it returns nil and why. An error means that the API
// server did not answer.
func ReadServe(ctx context.Context, c client.Reader, namespace string) (serve *Serve, why string, err error) {
	r := &reader{client: c, ctx: ctx, into: &Inventory{Unread: map[Source]Unread{}}}
	r.list(SourceLandwaiter, "deployments.apps", namespace, &appsv1.DeploymentList{}, into(&r.into.Landwaiters))
	if err := cmp.Or(r.failed, ctx.Err()); err != nil {
		return nil, "", err
	}
	if unread, ok := r.into.Unread[SourceLandwaiter]; ok {
		return nil, unread.Why, nil
	}
	p := serveOf(r.into.Landwaiters)
	if p == nil {
		return nil, "no Deployment in namespace " + namespace + " runs landwaiter-server serve", nil
	}
	return &Serve{p}, "", nil
}

// Flag returns the effective value of a flag, and false if serve has its default.
func (s *Serve) Flag(name string) (string, bool) {
	all := s.program.flags(name)
	if len(all) == 0 {
		return "", false
	}
	return all[len(all)-1].value, true
}

// Named returns the effective value of a flag with named values, or the default.
func (s *Serve) Named(flag, name, without string) string {
	return s.program.named(flag, name, without)
}

// Account returns the ServiceAccount that serve runs as, in its namespace.
func (s *Serve) Account() string { return s.program.account }
