package verify

import (
	"hash/maphash"
	"strconv"
)

// Revision names all that answers about images follow from: the generation of config, and its
// exceptions and break-glass that are in force now. Another one may give other answers, also
// where Generation is the same and cached verdicts hold. It is only known to this Engine.
func (e *Engine) Revision(config *Config) string {
	if len(config.Exceptions) == 0 && config.BreakGlass == nil {
		return config.Generation
	}
	var hash maphash.Hash
	hash.SetSeed(e.seed)
	add := func(x *Exception) {
		for _, part := range []string{x.Source.Kind, x.Source.Namespace, x.Source.Name, x.Why, x.Images.hash(), x.Within.hash()} {
			_, _ = hash.WriteString(part) // it never fails
			_ = hash.WriteByte(0)
		}
		maphash.WriteComparable(&hash, [2]int64{x.From.UnixNano(), x.Until.UnixNano()})
		maphash.WriteComparable(&hash, [2]bool{x.Floors, x.Within != nil})
	}
	now := e.now()
	for i := range config.Exceptions {
		if x := &config.Exceptions[i]; x.inForce(now) {
			add(x)
		}
	}
	if config.BreakGlass.counts(now) {
		add(config.BreakGlass)
	}
	return config.Generation + " " + strconv.FormatUint(hash.Sum64(), 16)
}

// hash is the Hash of a list that may be nil.
func (x *Excepted) hash() string {
	if x == nil {
		return ""
	}
	return x.Hash
}
