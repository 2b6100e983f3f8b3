package program

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Named is a flag with named values, each with its own type: --ttl pass=1h,deny=10s is the
// same as --ttl pass=1h --ttl deny=10s. A repeated name has the last value.
type Named struct{ values *pflag.FlagSet }

// RegisterNamed declares a flag. Each flag that declare adds to its argument is a name, with
// its type, default and meaning.
func RegisterNamed(f *pflag.FlagSet, name, usage string, declare func(values *pflag.FlagSet)) *Named {
	n := &Named{values: pflag.NewFlagSet(name, pflag.ContinueOnError)}
	n.values.SortFlags = false
	declare(n.values)
	f.Var(n, name, usage)
	return n
}

// Values returns a flag for each name, in the order of their declaration.
func (n *Named) Values() *pflag.FlagSet { return n.values }

// Type returns what help shows for the value.
func (n *Named) Type() string { return "NAME=VALUE" }

// String returns all non-empty values, in the form that Set takes.
func (n *Named) String() string {
	if n.values == nil { // pflag asks the zero value
		return ""
	}
	var all []string
	n.values.VisitAll(func(setting *pflag.Flag) {
		if value := setting.Value.String(); value != "" {
			all = append(all, setting.Name+"="+value)
		}
	})
	return strings.Join(all, ",")
}

// Set takes NAME=VALUE, or several separated by commas. As in other list flags, a value that
// contains a comma is put in double quotes.
func (n *Named) Set(text string) error {
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(lines) != 1 {
		return errors.New("it must be NAME=VALUE, or several separated by commas; put one with a comma or a quote in double quotes")
	}
	for _, one := range lines[0] {
		if err := n.set(one); err != nil {
			return err
		}
	}
	return nil
}

// set takes one NAME=VALUE.
func (n *Named) set(text string) error {
	name, value, given := strings.Cut(text, "=")
	setting := n.values.Lookup(name)
	switch {
	case setting == nil:
		return fmt.Errorf("there is no name %q; the names are %s", name, strings.Join(n.names(), ", "))
	case !given:
		return fmt.Errorf("%s has no value; use %s=VALUE", name, name)
	}
	if err := setting.Value.Set(value); err != nil {
		return fmt.Errorf("%s is %q, it must be %s", name, value, kind(setting.Value.Type()))
	}
	if tooLittle(setting) {
		return fmt.Errorf("%s is %s, it must be more than 0", name, setting.Value)
	}
	setting.Changed = true
	return nil
}

// tooLittle reports whether a number or duration is negative, or 0 if 0 has no documented meaning.
func tooLittle(setting *pflag.Flag) bool {
	if !slices.Contains([]string{"int", "int64", "duration"}, setting.Value.Type()) {
		return false
	}
	said := setting.Value.String()
	return said[0] == '-' || (said == "0" || said == "0s") && !strings.Contains(setting.Usage, "(0: ")
}

// kind describes values of a type.
func kind(of string) string {
	switch of {
	case "int", "int64":
		return "a whole number, without a unit"
	case "duration":
		return "a duration such as 90s, 10m or 1h"
	}
	return "a " + of
}

func (n *Named) names() (all []string) {
	n.values.VisitAll(func(setting *pflag.Flag) { all = append(all, setting.Name) })
	return all
}
