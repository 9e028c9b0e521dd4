package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Sim is the command that runs the model that -model names; the first one is the default. Each
// model has flags of its own.
func Sim(models []Command) Command {
	return Command{Name: "sim", Summary: "simulate in virtual time: -model " + modelNames(models), models: models}
}

func modelNames(models []Command) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// model returns the model that args name, and the other arguments.
func (c *Console) model(models []Command, args []string) (Command, []string, error) {
	name, args := modelName(args, models[0].Name)
	i := slices.IndexFunc(models, func(m Command) bool { return m.Name == name })
	if i < 0 {
		return Command{}, nil, fmt.Errorf("there is no model %q: there are %s", name, modelNames(models))
	}
	c.modelFlag = " -model " + name
	if slices.Contains(args, "-h") {
		fmt.Fprintln(c.Out, "-model says what to simulate; each model has flags of its own:")
		for _, m := range models {
			fmt.Fprintf(c.Out, "  %-10s %s\n", m.Name, m.Summary)
		}
	}
	return models[i], args, nil
}

// modelName takes -model out of args: which flags there are depends on it.
func modelName(args []string, usual string) (name string, others []string) {
	for i, arg := range args {
		flag, value, given := strings.Cut(arg, "=")
		switch {
		case flag != "-model" && flag != "--model":
		case given:
			return value, slices.Delete(slices.Clone(args), i, i+1)
		case i+1 < len(args):
			return args[i+1], slices.Delete(slices.Clone(args), i, i+2)
		}
	}
	return usual, args
}
