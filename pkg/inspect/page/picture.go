package page

import (
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/landwaiter/landwaiter/pkg/inspect/live"
)

// Layout of the picture of rules, in its own pixels.
const (
	pictureLabel  = 230 // the column that names levels
	pictureColumn = 250
	boxWidth      = 230
	boxHeight     = 44
	boxGap        = 8
	levelPad      = 14
	pictureHead   = 30
	maxBoxName    = 27
	maxLabel      = 18
)

// picture shows which rule decides in a namespace: the levels from top to bottom, with applied and
// shadowed resources. Levels has the same facts as text.
type picture struct {
	Width, Height int
	Columns       []pictureHeading
	Levels        []pictureLevel
	Describe      string
}

type pictureHeading struct {
	X    int
	Name string
}

type pictureLevel struct {
	Y, Height  int
	Name, From string
	Boxes      []box
	// Items are all resources of the level, including those without space in the picture.
	Items []box
}

// box is one resource in the picture.
type box struct {
	X, Y int
	// State is one of the states below.
	State, Kind, Name, Short, Says, Why string
	// Deny is the address that previews a policy that warns as if it denied, "" for others.
	Deny string
}

// The states of a box, with the text that the picture shows in addition to the color.
const (
	boxApplies  = "applies"
	boxWarns    = "warns"
	boxBroken   = "broken"
	boxPartly   = "partly"
	boxShadowed = "shadowed"
	boxUnknown  = "unknown"
)

// columnsOf are the kinds in the picture, with their headings.
func columnsOf() [][2]string {
	return [][2]string{{"VerificationPolicy", "Policies"}, {"Verifier", "Verifiers"}, {"Store", "Stores"}}
}

// pictureOf draws the rules of a namespace.
func pictureOf(n live.NamespaceStatus) picture {
	p := picture{Width: pictureLabel + len(columnsOf())*pictureColumn}
	for i, c := range columnsOf() {
		p.Columns = append(p.Columns, pictureHeading{X: pictureLabel + i*pictureColumn, Name: c[1]})
	}
	y := pictureHead
	add := func(name, from string, l live.Level, mandatory bool) {
		level := pictureLevel{Y: y, Name: name, From: from}
		tallest := 1
		for i, c := range columnsOf() {
			boxes := boxesOf(n, l, c[0], mandatory)
			level.Items = append(level.Items, boxes...)
			boxes = drawn(boxes)
			for j := range boxes {
				boxes[j].X, boxes[j].Y = pictureLabel+i*pictureColumn, y+levelPad+j*(boxHeight+boxGap)
			}
			tallest = max(tallest, len(boxes))
			level.Boxes = append(level.Boxes, boxes...)
		}
		level.Height = 2*levelPad + tallest*(boxHeight+boxGap) - boxGap
		y += level.Height
		p.Levels = append(p.Levels, level)
	}
	for _, l := range n.Levels {
		if l.Namespace == "" {
			add("Mandatory", "for every namespace", l, true)
		}
	}
	for _, l := range n.Levels {
		name, from := levelName(n, l)
		add(name, from, l, false)
	}
	p.Height = y
	p.Describe = describe(n)
	return p
}

// levelName names a level and says where its resources are.
func levelName(n live.NamespaceStatus, l live.Level) (name, from string) {
	switch {
	case l.Namespace == "":
		return "Cluster", "if no nearer level has any"
	case l.Name == "tenant" && l.Namespace == n.Namespace:
		return "Tenant " + shortLabel(n.Tenant), "this home namespace"
	case l.Name == "tenant":
		return "Tenant " + shortLabel(n.Tenant), "home namespace " + shortLabel(string(l.Namespace))
	}
	return "Namespace", shortLabel(string(l.Namespace))
}

// boxesOf returns a level's resources of a kind: mandatory policies, or all others.
func boxesOf(n live.NamespaceStatus, l live.Level, kind string, mandatory bool) []box {
	var boxes []box
	for _, r := range l.Resources {
		if r.Kind == kind && r.Mandatory == mandatory {
			boxes = append(boxes, boxOf(n, r))
		}
	}
	for _, unread := range l.Unread {
		if (unread == kind || unread == "Cluster"+kind) && (!mandatory || kind == "VerificationPolicy") {
			boxes = append(boxes, box{State: boxUnknown, Kind: unread, Short: "not readable", Says: "you cannot list them"})
		}
	}
	return boxes
}

// drawn returns the boxes that fit into a cell of the picture.
func drawn(boxes []box) []box {
	more := len(boxes) - maxBoxes
	if more <= 0 {
		return boxes
	}
	return append(slices.Clone(boxes[:maxBoxes]),
		box{State: boxUnknown, Kind: "More", Short: fmt.Sprintf("and %d more", more), Says: "the list below has all"})
}

func boxOf(n live.NamespaceStatus, r live.Placed) box {
	b := box{Kind: r.Ref.Kind, Name: r.Ref.Name, Short: shortName(r.Ref.Name), Why: r.Why}
	switch {
	case !n.Knows(r.Kind) && !r.Mandatory:
		b.State, b.Says, b.Why = boxUnknown, "not known whether it applies", "you cannot read all resources that may apply"
	case r.Broken != "" && (r.Applies || r.ForMandatory):
		b.State, b.Says, b.Why = boxBroken, "broken: "+r.Broken, "Landwaiter cannot use it, and denies every image that depends on it"
		switch {
		case r.Denies == r.Ref:
			b.Why = "Landwaiter cannot use it, and denies every image that its level judges"
		case r.Warns:
			b.Why = "Landwaiter cannot use it, which adds a warning to every image or, where no other policy denies, denies it"
		}
	case r.Applies && r.Denies.Name != "":
		b.State, b.Says = boxBroken, "denied: "+shortName(r.Denies.Name)+" is broken"
	case r.Applies && r.Warns:
		b.State, b.Says = boxWarns, "only warns"
		if r.Policy != nil {
			b.Deny = pathWhatIf + "?" + url.Values{"namespace": {string(n.Namespace)}, "deny": {r.Ref.String()}}.Encode()
		}
	case r.Applies && r.Unused:
		b.State, b.Says = boxPartly, "applies, but no policy asks for it"
	case r.Applies:
		b.State, b.Says = boxApplies, "applies"
	case r.ForMandatory:
		b.State, b.Says = boxPartly, "for mandatory policies only"
	default:
		b.State, b.Says = boxShadowed, instead(r.Instead)
	}
	return b
}

// instead briefly names the level that applies instead of a resource.
func instead(level string) string {
	switch level {
	case "namespace":
		return "shadowed by the namespace"
	case "tenant":
		return "shadowed by the Tenant"
	case "cluster":
		return "not used: the cluster decides"
	}
	return "does not apply"
}

// shortName fits a name into a box, and shortLabel into the column for levels.
func shortName(name string) string  { return shortened(name, maxBoxName) }
func shortLabel(name string) string { return shortened(name, maxLabel) }

func shortened(name string, most int) string {
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	return string([]rune(name)[:most-1]) + "…"
}

// describe says in one sentence which rules decide.
func describe(n live.NamespaceStatus) string {
	var names []string
	for _, l := range n.Levels {
		for _, r := range l.Resources {
			if r.Applies && r.Kind == "VerificationPolicy" && (r.Mandatory || n.Knows(r.Kind)) {
				name := r.Ref.String()
				if r.Broken != "" {
					name += " (broken)"
				}
				names = append(names, name)
			}
		}
	}
	switch {
	case !n.Knows("VerificationPolicy") && len(names) == 0:
		return "You cannot read all resources that may apply here, so this page cannot say which policy decides."
	case len(names) == 0:
		return "No policy applies, so the Verifiers that apply decide."
	case len(names) > maxBoxes:
		names = slices.Concat(names[:maxBoxes], []string{fmt.Sprintf("%d more", len(names)-maxBoxes)})
	}
	text := names[0]
	for i, name := range names[1:] {
		if i == len(names)-2 {
			text += " and " + name
		} else {
			text += ", " + name
		}
	}
	if len(names) == 1 {
		return text + " applies."
	}
	return text + " apply."
}

// bar is a picture of a total and its parts.
type bar struct {
	Width int
	Parts []barPart
}

type barPart struct {
	X, Width     int
	Class, Title string
}

const barWidth = 120

// stageBar draws how many namespaces of a team are at each stage.
func stageBar(counts []stageCount, all int) bar {
	b := bar{Width: barWidth}
	x, seen := 0, 0
	for _, c := range counts {
		seen += c.Count
		end := barWidth * seen / max(all, 1)
		b.Parts = append(b.Parts, barPart{X: x, Width: max(end-x, 2), Class: classOf(c.Stage), Title: fmt.Sprintf("%s: %d", c.Stage, c.Count)})
		x = end
	}
	return b
}

// classOf returns the CSS class of a word, which has no spaces.
func classOf(word string) string {
	switch word {
	case stageNone:
		return "none"
	case verdictUnverified:
		return "unverified"
	case verdictFails:
		return "denied"
	case "allowed", "exempt", "warned", "excepted", "undecided", "denied", "unknown", "valid", "invalid", "dryrun", "warn", "deny", "error",
		"warning", "note":
		return word
	}
	return "other"
}
