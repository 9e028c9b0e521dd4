package tiers

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/strict"
)

// The scenarios are files.
//
//go:embed scenarios
var files embed.FS

// Scenarios returns all scenarios: two tiers with a failure of a second, the article's incident of an
// hour, and the same incident where orders sheds load, or gets more CPUs.
func Scenarios() (all []Scenario) {
	names, err := fs.Glob(files, "scenarios/*.json")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(err)
		}
		s, err := Read(text)
		if err != nil {
			panic(fmt.Errorf("%s: %w", name, err)) // the tests read them all
		}
		all = append(all, s)
	}
	return all
}

// Read returns the scenario of a JSON file, whose keys are the tags of [Scenario] and of what is in it. The
// error names what is wrong, and where.
func Read(text []byte) (Scenario, error) {
	s := Scenario{file: text}
	if err := strict.Decode(text, &s); err != nil {
		return Scenario{}, err
	}
	if s.Name == "" || len(s.Strategies) == 0 {
		return Scenario{}, errors.New("want a name, and a strategy")
	}
	for _, y := range s.Strategies {
		o := Setup{Scenario: s, Strategy: y}
		if err := o.Validate(); err != nil {
			return Scenario{}, err
		}
	}
	return s, nil
}

// File returns the JSON of which the scenario was read.
func (s *Scenario) File() []byte { return bytes.Clone(s.file) }

// Has reports whether a name is that of one of the scenarios, or of a file with "tiers" in it, which may be
// wrong otherwise.
func Has(name string) bool {
	if !strings.HasSuffix(name, ".json") {
		return slices.ContainsFunc(Scenarios(), func(s Scenario) bool { return s.Name == name })
	}
	text, err := os.ReadFile(name)
	return err == nil && bytes.Contains(text, []byte(`"tiers"`))
}

// Find returns the scenario of that name. The error names those that there are. A name that ends with
// ".json" is that of a file of the user's.
func Find(name string) (Scenario, error) {
	if !strings.HasSuffix(name, ".json") {
		return pick.One("scenario", name, Scenarios(), func(s Scenario) string { return s.Name })
	}
	return strict.File(name, Read)
}
