package cel

import (
	"math/bits"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Pattern is a regular expression that must match whole texts. Patterns can be compared: see [Pattern.Common].
type Pattern struct {
	program *syntax.Prog
	// accepted has the characters that each instruction accepts.
	accepted []ascii
}

// ascii is a set of printable ASCII characters, one bit each: a Unicode class has hundreds of ranges, and comparing
// two of them for each pair of instructions would be slow.
type ascii [2]uint64

func (s *ascii) add(first, last rune) {
	for c := max(first, ' '); c <= min(last, '~'); c++ {
		s[c/64] |= 1 << (c % 64)
	}
}

// NewPattern reads an expression in Go's syntax (RE2). It returns the errors of [RegexpSize].
func NewPattern(expression string) (*Pattern, error) {
	return newPattern(expression, func(r *syntax.Regexp) *syntax.Regexp { return r })
}

// NewMeantPattern is NewPattern for an expression whose author forgot to escape dots: a dot that is not repeated
// only matches itself.
func NewMeantPattern(expression string) (*Pattern, error) { return newPattern(expression, literalDots) }

func newPattern(expression string, change func(*syntax.Regexp) *syntax.Regexp) (*Pattern, error) {
	if _, err := RegexpSize(expression); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(change(parsed).Simplify())
	if err != nil {
		return nil, err
	}
	p := &Pattern{program: program, accepted: make([]ascii, len(program.Inst))}
	for i := range program.Inst {
		p.accepted[i] = characters(&program.Inst[i])
	}
	return p, nil
}

// literalDots replaces the dots that are not repeated.
func literalDots(r *syntax.Regexp) *syntax.Regexp {
	switch r.Op {
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'.'}}
	case syntax.OpConcat, syntax.OpAlternate, syntax.OpCapture:
		for i, sub := range r.Sub {
			r.Sub[i] = literalDots(sub)
		}
	}
	return r
}

// characters returns what an instruction accepts.
func characters(i *syntax.Inst) (set ascii) {
	switch i.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		set.add(0, unicode.MaxRune)
	case syntax.InstRune1, syntax.InstRune:
		for at := 0; at+1 < len(i.Rune); at += 2 {
			set.add(i.Rune[at], i.Rune[at+1])
		}
		if len(i.Rune) != 1 {
			break
		}
		set.add(i.Rune[0], i.Rune[0])
		if syntax.Flags(i.Arg)&syntax.FoldCase != 0 { //nolint:gosec // flags of 16 bits
			for other := unicode.SimpleFold(i.Rune[0]); other != i.Rune[0]; other = unicode.SimpleFold(other) {
				set.add(other, other)
			}
		}
	}
	return set
}

// Common returns a shortest text of printable ASCII that both patterns match. It returns false if there is none, or
// if finding one takes more than the given steps, which it decrements.
func (p *Pattern) Common(other *Pattern, steps *int) (string, bool) {
	if *steps <= 0 {
		return "", false
	}
	s := search{patterns: [2]*Pattern{p, other}, steps: steps,
		wanted:   map[rune][]ascii{word: sets("az", "09", "AZ", "__"), punctuation: sets("-/", " ,", ":@", "[^", "``", "{~")},
		closures: map[closureKey][]uint32{}, from: map[place]origin{},
		seen: [2][]uint32{make([]uint32, len(p.program.Inst)), make([]uint32, len(other.program.Inst))}}
	start := place{at: [2]uint32{uint32(p.program.Start), uint32(other.program.Start)}, last: edge} //nolint:gosec // programs are small
	s.from[start] = origin{}
	for s.queue = []place{start}; len(s.queue) > 0; {
		at := s.queue[0]
		s.queue = s.queue[1:]
		if s.ends(at) {
			return s.text(at), true
		}
		for _, next := range []rune{word, punctuation} {
			s.follow(at, next)
		}
		if *s.steps <= 0 {
			return "", false
		}
	}
	return "", false
}

// The kinds of characters that assertions such as \b distinguish, as characters of each kind. Edge has
// none.
const (
	edge        rune = -1
	word        rune = 'a'
	punctuation rune = '-'
)

// place is the state of both patterns after a text that ends with a kind of character.
type place struct {
	at   [2]uint32
	last rune
}

// origin is the step that led to a place.
type origin struct {
	from place
	by   rune
}

type closureKey struct {
	pattern    int
	at         uint32
	last, next rune
}

// search looks for a text that two patterns match, breadth first over pairs of their instructions.
type search struct {
	patterns [2]*Pattern
	steps    *int
	wanted   map[rune][]ascii // the characters of each kind, the most readable ones first
	closures map[closureKey][]uint32
	from     map[place]origin
	queue    []place
	// seen has the mark of the last closure that reached each instruction. Closures share it and the stack.
	seen [2][]uint32
	mark uint32
	todo []uint32
}

// closure returns the instructions that accept a character or the end, starting from an instruction
// between two characters.
func (s *search) closure(pattern int, at uint32, last, next rune) []uint32 {
	key := closureKey{pattern, at, last, next}
	if found, ok := s.closures[key]; ok {
		return found
	}
	program, holds := s.patterns[pattern].program, syntax.EmptyOpContext(last, next)
	found, todo := []uint32{}, append(s.todo[:0], at)
	seen := s.seen[pattern]
	s.mark++
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] == s.mark {
			continue
		}
		seen[pc] = s.mark
		*s.steps--
		switch i := &program.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, i.Arg, i.Out)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, i.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^holds == 0 { //nolint:gosec // a flag of 8 bits
				todo = append(todo, i.Out)
			}
		case syntax.InstFail:
		default:
			found = append(found, pc)
		}
	}
	s.closures[key], s.todo = found, todo
	return found
}

// ends reports whether both patterns can end at a place.
func (s *search) ends(at place) bool {
	for i, p := range s.patterns {
		if !slices.ContainsFunc(s.closure(i, at.at[i], at.last, edge), func(pc uint32) bool {
			return p.program.Inst[pc].Op == syntax.InstMatch
		}) {
			return false
		}
	}
	return true
}

// follow adds the places that one more character of a kind leads to.
func (s *search) follow(at place, kind rune) {
	for _, one := range s.closure(0, at.at[0], at.last, kind) {
		for _, two := range s.closure(1, at.at[1], at.last, kind) {
			if *s.steps--; *s.steps <= 0 {
				return
			}
			by, ok := s.shared(s.patterns[0].accepted[one], s.patterns[1].accepted[two], kind)
			if !ok {
				continue
			}
			next := place{at: [2]uint32{s.patterns[0].program.Inst[one].Out, s.patterns[1].program.Inst[two].Out}, last: kind}
			if _, known := s.from[next]; !known {
				s.from[next] = origin{at, by}
				s.queue = append(s.queue, next)
			}
		}
	}
}

// text returns the text that leads to a place.
func (s *search) text(at place) string {
	var text []rune
	for at.last != edge {
		o := s.from[at]
		text, at = append(text, o.by), o.from
	}
	slices.Reverse(text)
	return string(text)
}

// sets returns sets of characters, each from a first to a last one.
func sets(ranges ...string) (list []ascii) {
	for _, r := range ranges {
		var set ascii
		set.add(rune(r[0]), rune(r[1]))
		list = append(list, set)
	}
	return list
}

// shared returns a character of a kind that both sets have, a letter or a digit if there is one.
func (s *search) shared(a, b ascii, kind rune) (rune, bool) {
	for _, wanted := range s.wanted[kind] {
		for half := range wanted {
			if both := a[half] & b[half] & wanted[half]; both != 0 {
				return rune(64*half + bits.TrailingZeros64(both)), true //nolint:gosec // below 128
			}
		}
	}
	return 0, false
}
