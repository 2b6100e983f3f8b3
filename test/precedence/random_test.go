package precedence

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The names in random worlds. web and prod may be a Tenant's, whose home namespace is home.
const (
	home = "home"
	web  = "web"
	prod = "team-prod"

	hostA = "a.example.com"
	hostB = "b.example.com"

	unreadable = "unreadable"
)

// now is when every image of random worlds is judged.
func now() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

// dice draws random worlds.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 0))} }

// once is true in one of n cases.
func (d dice) once(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, list ...T) T { return list[d.IntN(len(list))] }

// some returns some elements of a list, at least one.
func some[T any](d dice, list ...T) []T {
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:1+d.IntN(len(list))]
}

// images returns what is judged in each world.
func images() []Image {
	digest := "sha256:" + fmt.Sprintf("%064d", 1)
	return []Image{{hostA + "/app/one", hostA, digest}, {hostA + "/app/two", hostA, ""}, {hostB + "/app/one", hostB, digest}}
}

func (d dice) patterns() []string {
	return []string{pick(d, "**", "**", "**", "**", hostA+"/**", hostA+"/app/one", hostB+"/app/one", hostA+"/app/two")}
}

// world draws a world.
func (d dice) world() World {
	w := World{Now: now(), Namespaces: map[string]Level{}}
	w.Cluster = d.level("")
	for _, name := range []string{home, web, prod} {
		if name == home && d.once(12) {
			continue
		}
		w.Namespaces[name] = d.level(name)
	}
	for i := range d.IntN(3) {
		w.Tenants = append(w.Tenants, d.tenant(fmt.Sprintf("tenant-%d", i)))
	}
	return w
}

// evidence draws what Verifiers find.
func (d dice) evidence() map[string]map[string][]string {
	all := map[string]map[string][]string{}
	for _, repository := range []string{"", "evidence-of-cluster", "evidence-of-home", "evidence-of-web", "evidence-of-team-prod"} {
		all[repository] = map[string][]string{}
		for _, level := range []string{"", home, web, prod} {
			for _, name := range verifierNames() {
				all[repository][id(level, name)] = d.findings()
			}
		}
	}
	return all
}

func id(level, name string) string { return level + "/" + name }

func verifierNames() []string { return []string{"cosign", "sbom", "release"} }

func (d dice) findings() []string {
	return pick(d, []string{"alice"}, []string{"alice"}, []string{"bob"}, []string{"alice", "bob"}, []string{unreadable}, []string{unreadable, "alice"},
		[]string{"", "bob"}, nil)
}

func (d dice) tenant(name string) Tenant {
	t := Tenant{Name: name, HomeNamespace: pick(d, home, home, home, prod), PolicyLevel: pick(d, "Namespace", "Namespace", "Tenant", "Cluster")}
	if d.once(2) {
		t.Namespaces = []string{web}
	}
	if d.once(2) {
		t.Prefix = "team-"
	}
	t.Unreadable = d.once(20)
	return t
}

func (d dice) level(name string) Level {
	l := Level{Name: name}
	if name != "" {
		l.Unreadable, l.Ending = d.once(50), d.once(25)
	}
	if d.once(2) {
		for _, verifier := range verifierNames() {
			if d.once(2) {
				l.Verifiers = append(l.Verifiers, d.verifier(name, verifier))
			}
		}
	}
	if d.once(2) || name == "" {
		for range d.IntN(3) {
			l.Policies = append(l.Policies, d.policy(name))
		}
	}
	if d.once(2) {
		l.Store = &Store{Host: pick(d, hostA, hostA, hostA, hostA, hostA, ""), Broken: d.once(8)}
		if l.Store.Broken = l.Store.Broken || l.Store.Host == ""; d.once(2) && !l.Store.Broken {
			l.Store.Evidence = "evidence-of-" + name
			if name == "" {
				l.Store.Evidence = "evidence-of-cluster"
			}
		}
	}
	for range pick(d, 0, 0, 1, 2) {
		l.Exceptions = append(l.Exceptions, d.exception(name))
	}
	if name != "" && !l.Unreadable && d.once(8) {
		l.BreakGlass = &Exception{From: now().Add(pick(d, -time.Hour, time.Hour)), Until: now().Add(2 * time.Hour), OverrideMandatory: d.once(2)}
		if d.once(4) {
			l.BreakGlass.From, l.BreakGlass.Until = now().Add(-2*time.Hour), now()
		}
	}
	return l
}

func (d dice) verifier(level, name string) Verifier {
	v := Verifier{ID: id(level, name), Name: name, Type: "Cosign", Images: d.patterns(), Broken: d.once(20)}
	if name == "sbom" {
		v.Type = "Attestation"
	}
	if d.once(30) {
		v.Type, v.Images, v.Broken = "", []string{"**"}, true
	}
	return v
}

func (d dice) policy(level string) Policy {
	p := Policy{Default: pick(d, "Deny", "Allow", "Inherit"), Warns: d.once(4), Broken: d.once(25)}
	if level == "" {
		p.Default, p.Mandatory = pick(d, "Deny", "Allow"), d.once(3)
	}
	if p.Broken {
		p.Default = "Deny"
	}
	for range 1 + d.IntN(2) {
		p.Rules = append(p.Rules, d.rule())
	}
	if d.once(40) {
		p.Broken, p.Warns, p.Mandatory, p.Rules = true, false, level == "", nil
	}
	return p
}

func (d dice) rule() Rule {
	r := Rule{Images: pick(d, d.patterns(), []string{pick(d, images()...).Name}),
		Action: pick(d, "Require", "Require", "Require", "Require", "Require", "Require", "Allow", "Deny")}
	if r.Action != "Require" {
		return r
	}
	for range 1 + d.IntN(2) {
		requirement := Requirement{AtLeast: pick(d, 1, 1, 1, 2)}
		switch d.IntN(12) {
		case 0, 1, 2, 3:
			requirement.AnyOf = some(d, verifierNames()...)
		case 4, 5, 6:
			requirement.AllOf = some(d, verifierNames()...)
		case 7, 8, 9:
			requirement.Types = some(d, "Cosign", "Notation", "Attestation")
		case 10: // a compilation takes long
			requirement.Exists = pick(d, verifierNames()...)
		default:
			requirement.ExistsNot = pick(d, verifierNames()...)
		}
		r.Require = append(r.Require, requirement)
	}
	return r
}

func (d dice) exception(level string) Exception {
	x := Exception{Until: now().Add(pick(d, time.Hour, time.Hour, time.Hour, 0, -time.Hour))}
	x.Images = append(d.patterns(), images()[0].Name+"@"+images()[0].Digest)[d.IntN(2):][:1]
	if level != "" {
		return x
	}
	x.Namespaces = some(d, home, web, prod)
	if d.once(2) {
		x.Delegates = true
		x.Images = pick(d, x.Images, []string{"**"})
		if d.once(2) {
			x.Namespaces, x.Tenants = nil, []string{pick(d, "tenant-0", "tenant-1")}
		}
		return x
	}
	if d.once(3) {
		x.Namespaces = []string{"*"}
	}
	x.OverrideMandatory = d.once(3)
	return x
}
