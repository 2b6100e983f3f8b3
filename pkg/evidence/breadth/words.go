package breadth

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// Reach returns the widest reach of the strangers, [Nobody] if there are none.
func (j Judgement) Reach() Reach {
	if len(j.Strangers) == 0 {
		return Nobody
	}
	return j.Strangers[0].Reach
}

// maxNamed is the number of strangers that are named.
const maxNamed = 4

// Named names the strangers, widest reach first, each with an accepted subject.
func (j Judgement) Named() string {
	var list []string
	for _, s := range j.Strangers[:min(len(j.Strangers), maxNamed)] {
		list = append(list, fmt.Sprintf("%s (%s)", s.Who, cosign.Excerpt(s.Subject)))
	}
	if more := len(j.Strangers) - maxNamed; more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, ", ")
}

// Instead returns the narrower identity as YAML.
func (j Judgement) Instead() string {
	i := j.Narrower
	switch {
	case j.Expression != "":
		return "write keyless.expression: " + quoted(j.Expression) + ", with your own names"
	case i == (cosign.Identity{}):
		return "write the exact subject of the signer, which landwaiter verify --explain shows"
	}
	var fields []string
	if i.InsecureIgnoreIssuer {
		fields = append(fields, "insecureIgnoreIssuer: true")
	}
	for _, f := range [][2]string{{"issuer", i.Issuer}, {"issuerRegExp", i.IssuerRegExp}, {"subject", i.Subject},
		{"subjectRegExp", i.SubjectRegExp}} {
		if f[1] != "" {
			fields = append(fields, f[0]+": "+quoted(f[1]))
		}
	}
	return "write {" + strings.Join(fields, ", ") + "}, with your own names"
}

// quoted returns a text in YAML's quotes.
func quoted(text string) string {
	if strings.Contains(text, "'") {
		return strconv.Quote(text)
	}
	return "'" + text + "'"
}

// Flux judges an identity of a source of Flux (spec.verify.matchOIDCIdentity), whose expressions may match a part of
// an issuer and of a subject.
func Flux(issuer, subject string, steps *int) Judgement {
	return Judge(cosign.Identity{IssuerRegExp: anywhere(issuer), SubjectRegExp: anywhere(subject)}, "", steps)
}

// anywhere returns an expression that matches whole texts which contain a match of another
// one.
func anywhere(expression string) string { return ".*(?:" + expression + ").*" }
