package precedence

import "time"

// Outcome is the answer about an image. Only Allowed admits it. Of several, the smallest counts.
type Outcome int

// The outcomes.
const (
	Denied Outcome = iota
	Undecided
	Allowed
)

// Image is an image of a pod. Digest is "" if the pod names a tag.
type Image struct{ Name, Host, Digest string }

// World is what verdicts depend on. Tenants are sorted by age, resources by name. Evidence is
// what a Verifier finds, by [Store.Evidence] and [Verifier.ID]: who signed, "unreadable", or "".
type World struct {
	Now        time.Time
	Cluster    Level
	Namespaces map[string]Level // those that exist
	Tenants    []Tenant
	Evidence   map[string]map[string][]string
}

// Level has the resources of a namespace or, without a name, of the cluster.
type Level struct {
	Name               string
	Unreadable, Ending bool // the Namespace
	Verifiers          []Verifier
	Policies           []Policy
	Store              *Store
	Exceptions         []Exception
	BreakGlass         *Exception
}

// Tenant is a team with namespaces. PolicyLevel is Namespace, Tenant or Cluster.
type Tenant struct {
	Name, HomeNamespace, Prefix, PolicyLevel string
	Namespaces                               []string
	Unreadable                               bool
}

// Verifier finds evidence about the images that it matches. A broken one finds nothing; an
// unreadable one is broken, has no Type and matches all images.
type Verifier struct {
	ID, Name, Type string
	Images         []string
	Broken         bool
}

// Policy says what images need. Default is Deny, Inherit or Allow. An unreadable policy is
// broken, does not warn and, in the cluster, is mandatory. The default of a broken one is Deny.
type Policy struct {
	Rules                    []Rule
	Default                  string
	Warns, Mandatory, Broken bool
}

// Rule is for some images. Action is Require, Allow or Deny.
type Rule struct {
	Images  []string
	Action  string
	Require []Requirement
}

// Requirement has names of Verifiers in AnyOf or AllOf, or types, or an expression: the Verifier
// Exists has found something, or the Verifier ExistsNot has not.
type Requirement struct {
	AnyOf, AllOf, Types []string
	Exists, ExistsNot   string
	AtLeast             int
}

// Store serves a host, "" if it is unreadable. Evidence is its own repository of evidence.
type Store struct {
	Host, Evidence string
	Broken         bool
}

// Exception allows images for a time in Namespaces, "*" for all, or delegates that to Namespaces
// and Tenants. Broken ones are left out.
type Exception struct {
	Images, Namespaces, Tenants  []string
	From, Until                  time.Time
	Delegates, OverrideMandatory bool
}

// Answer is the verdict on an image with some [World.Evidence].
type Answer struct {
	Namespace string
	Image     Image
	Evidence  map[string]map[string][]string
	Outcome   Outcome
	Warned    bool
}
