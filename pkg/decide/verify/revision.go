package verify

import (
	"hash/maphash"
	"strconv"
	"time"
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
	now, sums := e.now(), map[*Grants]uint64{}
	add := func(x *Exception) {
		for _, part := range []string{x.Source.Kind, x.Source.Namespace, x.Source.Name, x.Why, x.Images.hash()} {
			_, _ = hash.WriteString(part) // it never fails
			_ = hash.WriteByte(0)
		}
		if _, known := sums[x.Grants]; !known {
			sums[x.Grants] = x.Grants.sum(e.seed, now)
		}
		maphash.WriteComparable(&hash, sums[x.Grants])
		maphash.WriteComparable(&hash, [3]int64{x.Created.UnixNano(), x.From.UnixNano(), x.Until.UnixNano()})
		maphash.WriteComparable(&hash, [2]bool{x.OverrideMandatory, x.Grants != nil})
	}
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

// sum hashes the grants that have not ended. g may be nil.
func (g *Grants) sum(seed maphash.Seed, now time.Time) uint64 {
	if g == nil {
		return 0
	}
	var hash maphash.Hash
	hash.SetSeed(seed)
	for _, grant := range *g {
		if now.Before(grant.Until) {
			_, _ = hash.WriteString(grant.Within.hash()) // it never fails
			_ = hash.WriteByte(0)
			maphash.WriteComparable(&hash, [2]int64{grant.Until.UnixNano(), int64(grant.Most)})
		}
	}
	return hash.Sum64()
}

// hash is the Hash of a list that may be nil.
func (x *Excepted) hash() string {
	if x == nil {
		return ""
	}
	return x.Hash
}
