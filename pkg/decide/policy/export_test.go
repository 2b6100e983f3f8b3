package policy

// Warn is warn, for tests.
func (v Verdict) Warn() Verdict { return v.warn() }
