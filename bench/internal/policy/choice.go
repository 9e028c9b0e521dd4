package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/reconnect/backoff"
)

// Choice is a rule with parameters of its own.
type Choice struct {
	Rule
	Params
}

// New returns the policy.
func (c Choice) New() backoff.Policy { return c.Rule.New(c.Params) }

// String returns what Parse makes the same Choice of, such as "full:base=500ms,cap=15s".
func (c Choice) String() string {
	if given := c.Params.String(); given != "" {
		return c.Name + ":" + given
	}
	return c.Name
}

// Text returns the Choice's String.
func Text(c Choice) string { return c.String() }

// Parse returns the policies of a list such as "redial,full:base=500ms,cap=15s,grpc". Commas separate
// all. A word with a "=" and without a ":" is an option of the policy before it, and each other word
// begins a policy. "all" is each of the rules. What is the name of the flag, for errors, which name
// what there is, and what is nearest.
func Parse(what, text string, rules []Rule) (all []Choice, err error) {
	if text == "all" {
		for _, r := range rules {
			all = append(all, Choice{Rule: r})
		}
		return all, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		name, option, begins := strings.Cut(word, ":")
		if begins || len(all) == 0 || !strings.Contains(word, "=") {
			r, err := pick.One(what, name, rules, NameOf)
			if err != nil {
				return nil, err
			}
			all = append(all, Choice{Rule: r})
			if !begins {
				continue
			}
			word = option
		}
		if err := all[len(all)-1].set(word); err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, all[len(all)-1].Name, err)
		}
	}
	for _, c := range all {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, c.Name, err)
		}
	}
	return all, nil
}

// set takes an option such as "base=1s".
func (c *Choice) set(option string) error {
	key, value, ok := strings.Cut(option, "=")
	switch {
	case !ok:
		return fmt.Errorf("want an option such as base=1s, not %q", option)
	case len(c.Takes) == 0:
		return fmt.Errorf("there is no option %q, nor any other", key)
	}
	name, err := pick.One("option", key, c.Takes, func(p Param) string { return string(p) })
	if err != nil {
		return err
	}
	for _, one := range c.all() {
		if one.name != name {
			continue
		}
		if one.given() {
			return fmt.Errorf("%s is given twice", name)
		}
		if err := one.set(value); err != nil {
			return fmt.Errorf("%s=%s: %w", name, value, err)
		}
	}
	return nil
}

// check returns an error for parameters that mean nothing together, or nothing to the rule.
func (c Choice) check() error {
	if c.Jitter > 1 && slices.Contains([]string{proportional, "own"}, c.Name) {
		return fmt.Errorf("jitter=%v: must be at most 1, because a wait is not below 0; \"waits -mode users -jitter\" cuts it there", c.Jitter)
	}
	return c.Params.check()
}

// texts is a flag that may be repeated. The first one replaces the default.
type texts struct {
	all   []string
	given bool
}

func (t *texts) String() string { return strings.Join(t.all, ",") }

func (t *texts) Word() string { return "names" }

func (t *texts) Set(text string) error {
	if !t.given {
		t.all, t.given = nil, true
	}
	t.all = append(t.all, text)
	return nil
}

// Flag adds the flag -policy, which may be repeated, and what -list says of the rules. Without a
// default, into may stay empty.
func Flag(f *cli.Flags, into *[]Choice, usual, help string, rules []Rule) {
	var given texts
	if usual != "" {
		given.all = []string{usual}
	}
	f.Var(&given, "policy", help+"; commas separate policies, options follow a name: full:base=500ms,cap=15s,grpc; or all; -list shows them")
	f.List("the policies and their options", func(w io.Writer) {
		for _, r := range rules {
			fmt.Fprintf(w, "%-14s %s\n", r.Name, r.Help())
		}
	})
	f.Check(func() error {
		seen := map[string]bool{}
		for _, text := range given.all {
			all, err := Parse("-policy", text, rules)
			if err != nil {
				return err
			}
			for _, c := range all {
				if seen[c.String()] {
					return fmt.Errorf("-policy %s is given twice", c)
				}
				seen[c.String()] = true
				*into = append(*into, c)
			}
		}
		return nil
	})
}

// Help returns what the rule is, and the options that it takes.
func (r Rule) Help() string {
	if len(r.Takes) == 0 {
		return r.Summary
	}
	return r.Summary + "; " + strings.Join(pick.Names(r.Takes, func(p Param) string { return string(p) }), ", ")
}
