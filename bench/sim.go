package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"
)

// model is one of the simulations that "bench sim -model NAME" runs. Each parses
// flags of its own, of which -model is one.
type model struct {
	name    string
	summary string // one line, without a full stop
	run     func(ctx context.Context, c *console, args []string) error
}

var models []model

// registerModel adds a model. Each has a file of its own and calls this from init.
func registerModel(m model) { models = append(models, m) }

func init() {
	register(command{"sim", "simulate in virtual time: -model queueing, tiers, storm, aws, letters, fleet, ratelimit, rotation or drain", simulate})
}

const defaultModel = "queueing"

// simulate runs the model that -model names.
func simulate(ctx context.Context, c *console, args []string) error {
	name := modelName(args)
	i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
	if i >= 0 {
		return models[i].run(ctx, c, args)
	}
	var names []string
	for _, m := range models {
		names = append(names, m.name)
	}
	slices.Sort(names)
	return usageError{fmt.Errorf("there is no model %q: there are %s", name, strings.Join(names, ", "))}
}

// modelName finds -model in args before they can be parsed: which flags there are
// depends on it.
func modelName(args []string) string {
	for i, arg := range args {
		flag, value, given := strings.Cut(arg, "=")
		switch {
		case flag != "-model" && flag != "--model":
		case given:
			return value
		case i+1 < len(args):
			return args[i+1]
		}
	}
	return defaultModel
}

// modelFlags returns the flags of a model, with the one that all of them have.
func modelFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet("sim -model "+name, flag.ContinueOnError)
	var all []string
	for _, m := range models {
		all = append(all, fmt.Sprintf("%s: %s", m.name, m.summary))
	}
	slices.Sort(all)
	flags.String("model", defaultModel, "what to simulate; each model has flags of its own\n"+strings.Join(all, "\n"))
	return flags
}

// seconds is a flag for a length of time: "1.5s", "2m", or a number of seconds.
type seconds struct{ d *time.Duration }

func (s seconds) String() string {
	if s.d == nil || *s.d == 0 {
		return "" // so that package flag prints no default
	}
	return s.d.String()
}

func (s seconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 {
		return errors.New("must be a time, such as 1.5s or 20, which is 20s")
	}
	*s.d = d
	return nil
}
