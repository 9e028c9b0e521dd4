package queueing

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/strict"
)

// The scenarios are files: those of the article and its program, and more.
//
//go:embed scenarios
var files embed.FS

// partial is the scenario of which retry_cb_vs_budget is a part.
const partial = "retry_cb_or_budget_vs_exp_backoff_partial_failure"

// Scenarios returns the 17 scenarios of the article and its program, in their order
// and with their names.
func Scenarios() []Scenario { return embedded("article") }

// MoreScenarios returns scenarios that the article does not have. Three compare the article's budget
// with the presets, on a server that has little to spare.
func MoreScenarios() []Scenario { return embedded("more") }

// embedded returns the scenarios of a directory in the order of their files' names. It cannot fail,
// because the tests read all of these files.
func embedded(dir string) (all []Scenario) {
	dir = "scenarios/" + dir
	entries, err := files.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		text, err := fs.ReadFile(files, dir+"/"+e.Name())
		if err != nil {
			panic(err)
		}
		s, err := Read(text)
		if err != nil {
			panic(fmt.Errorf("%s: %w", e.Name(), err))
		}
		all = append(all, s)
	}
	return all
}

// Read returns the scenario of a JSON file, whose keys are the tags of [Scenario], [Failure] and
// [Strategy]. The error names what is wrong, and where.
func Read(text []byte) (Scenario, error) {
	s := Scenario{file: text}
	if err := strict.Decode(text, &s); err != nil {
		return Scenario{}, err
	}
	return s, s.Check()
}

// File returns the JSON of which the scenario was read.
func (s *Scenario) File() []byte { return bytes.Clone(s.file) }

// Find returns the scenario of that name: one of [Scenarios] or [MoreScenarios], or
// retry_cb_vs_budget, which is two strategies of another scenario. A name that ends with ".json" is the
// path of a file.
func Find(name string) (Scenario, error) {
	if strings.HasSuffix(name, ".json") {
		return strict.File(name, Read)
	}
	all := slices.Concat(Scenarios(), MoreScenarios())
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		if s.Name == partial && name == "retry_cb_vs_budget" {
			s.Name = name
			s.Strategies = slices.DeleteFunc(s.Strategies, func(y Strategy) bool { return y.Budget == "" && y.RetryBreaker == "" })
			return s, nil
		}
	}
	names := pick.Names(all, func(s Scenario) string { return s.Name })
	return Scenario{}, fmt.Errorf("find scenario %q: there is none of that name%s: -list names them", name, pick.Nearest(name, names))
}
