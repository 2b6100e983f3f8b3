package policy

// Tally follows the findings for one image as they arrive and reports when more of them
// cannot change the verdict. It costs constant time per finding and requirement that
// names its verifier, however many findings there are. It is not safe for concurrent use.
type Tally struct {
	open int // requirements that are not met yet
	of   map[string][]*progress
}

// progress is what one requirement still lacks.
type progress struct {
	atLeast int
	signers map[string]bool
	lacking map[string]bool // verifiers of AllOf without proof
	met     bool
}

// Tally returns the state of r before the first finding.
func (r Requirements) Tally() *Tally {
	t := &Tally{open: len(r.Require), of: map[string][]*progress{}}
	for _, requirement := range r.Require {
		if requirement.condition != nil || requirement.atLeast < 1 {
			continue // stays open: a condition needs all findings
		}
		p := &progress{atLeast: requirement.atLeast, signers: map[string]bool{}, lacking: map[string]bool{}}
		for _, name := range unique(requirement.Verifiers()) {
			if requirement.all {
				p.lacking[name] = true
			}
			t.of[name] = append(t.of[name], p)
		}
	}
	return t
}

// Add counts a finding.
func (t *Tally) Add(f Finding) {
	if !f.Proven() {
		return
	}
	for _, p := range t.of[f.Verifier] {
		if p.met {
			continue
		}
		p.signers[f.signer] = true
		delete(p.lacking, f.Verifier)
		if len(p.signers) >= p.atLeast && len(p.lacking) == 0 {
			p.met = true
			t.open--
		}
	}
}

// Settled reports whether the search for evidence may stop. Findings only add proof, so
// that is the case once every requirement is met; a condition is never settled early,
// and rules without requirements never are.
func (t *Tally) Settled() bool { return t.open == 0 && len(t.of) > 0 }
