package cel

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// Pattern is a regular expression that must match whole texts. Patterns can be compared: see [Pattern.Common].
type Pattern struct {
	program *syntax.Prog
	// accepted are the characters of each instruction, as pairs of first and last.
	accepted [][]rune
}

// NewPattern reads an expression in Go's syntax (RE2). It returns the errors of [RegexpSize].
func NewPattern(expression string) (*Pattern, error) {
	if _, err := RegexpSize(expression); err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	p := &Pattern{program: program, accepted: make([][]rune, len(program.Inst))}
	for i := range program.Inst {
		p.accepted[i] = characters(&program.Inst[i])
	}
	return p, nil
}

// characters returns what an instruction accepts, as pairs of first and last; nil if it accepts no character.
func characters(i *syntax.Inst) []rune {
	switch i.Op {
	case syntax.InstRuneAny, syntax.InstRuneAnyNotNL: // no text that is looked for has a new line
		return []rune{0, unicode.MaxRune}
	case syntax.InstRune1, syntax.InstRune:
		if len(i.Rune) != 1 {
			return i.Rune
		}
		list := []rune{i.Rune[0], i.Rune[0]}
		if syntax.Flags(i.Arg)&syntax.FoldCase != 0 { //nolint:gosec // flags of 16 bits
			for other := unicode.SimpleFold(i.Rune[0]); other != i.Rune[0]; other = unicode.SimpleFold(other) {
				list = append(list, other, other)
			}
		}
		return list
	}
	return nil
}

// Common returns a shortest text of printable ASCII that both patterns match, and false if there is none or finding
// one takes more than so many steps. It takes the steps off the given number.
func (p *Pattern) Common(other *Pattern, steps *int) (string, bool) {
	s := search{patterns: [2]*Pattern{p, other}, steps: steps, closures: map[closureKey][]uint32{}, from: map[place]origin{}}
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

// The kinds of characters that assertions such as \b tell apart, as characters of each kind: edge is none.
const (
	edge        rune = -1
	word        rune = 'a'
	punctuation rune = '-'
)

// place is where both patterns are after a text that ends with a kind of character.
type place struct {
	at   [2]uint32
	last rune
}

// origin is how a place was reached.
type origin struct {
	from place
	by   rune
}

type closureKey struct {
	pattern    int
	at         uint32
	last, next rune
}

// search looks for a text that two patterns match: breadth first over pairs of their instructions.
type search struct {
	patterns [2]*Pattern
	steps    *int
	closures map[closureKey][]uint32
	from     map[place]origin
	queue    []place
}

// closure returns the instructions that accept a character or the end, from an instruction on, between two
// characters.
func (s *search) closure(pattern int, at uint32, last, next rune) []uint32 {
	key := closureKey{pattern, at, last, next}
	if found, ok := s.closures[key]; ok {
		return found
	}
	program, holds := s.patterns[pattern].program, syntax.EmptyOpContext(last, next)
	seen, found, todo := map[uint32]bool{}, []uint32{}, []uint32{at}
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
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
	s.closures[key] = found
	return found
}

// ends reports whether both patterns can end at a place.
func (s *search) ends(at place) bool {
	for i, p := range s.patterns {
		if !slices.ContainsFunc(s.closure(i, at.at[i], at.last, edge), func(pc uint32) bool { return p.program.Inst[pc].Op == syntax.InstMatch }) {
			return false
		}
	}
	return true
}

// follow adds the places after one more character of a kind.
func (s *search) follow(at place, kind rune) {
	for _, one := range s.closure(0, at.at[0], at.last, kind) {
		for _, two := range s.closure(1, at.at[1], at.last, kind) {
			if *s.steps--; *s.steps <= 0 {
				return
			}
			by, ok := shared(s.patterns[0].accepted[one], s.patterns[1].accepted[two], kind)
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

// shared returns a character of a kind that both lists of pairs have, a letter or a digit if there is one.
func shared(a, b []rune, kind rune) (rune, bool) {
	wanted := [][2]rune{{'a', 'z'}, {'0', '9'}, {'A', 'Z'}, {'_', '_'}}
	if kind == punctuation {
		wanted = [][2]rune{{'-', '/'}, {' ', ','}, {':', '@'}, {'[', '^'}, {'`', '`'}, {'{', '~'}}
	}
	for _, w := range wanted {
		for i := 0; i+1 < len(a); i += 2 {
			for j := 0; j+1 < len(b); j += 2 {
				if first := max(a[i], b[j], w[0]); first <= min(a[i+1], b[j+1], w[1]) {
					return first, true
				}
			}
		}
	}
	return 0, false
}
