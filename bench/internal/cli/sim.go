package cli

import (
	"fmt"
	"slices"
	"strings"
)

// Sim is the command that runs the model that -model names; the first one is the default. Each
// model has flags of its own.
func Sim(models []Command) Command {
	return Command{Name: "sim", Summary: "simulate in virtual time, by the model of -model: " + modelNames(models), models: models}
}

func modelNames(models []Command) string {
	var names []string
	for _, m := range models {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// model returns the model that args name, and the other arguments. If they ask for help without naming one,
// it lists the models and returns none.
func (c *Console) model(models []Command, args []string) (Command, []string, error) {
	name, args, named := modelName(args)
	if !named {
		name = models[0].Name
	}
	i := slices.IndexFunc(models, func(m Command) bool { return m.Name == name })
	if i < 0 {
		return Command{}, nil, fmt.Errorf("there is no model %q: there are %s", name, modelNames(models))
	}
	if !named && slices.ContainsFunc(args, isHelp) {
		fmt.Fprintf(c.Out, "usage: %s -model MODEL [flags]; \"%s -model MODEL -h\" lists the flags of a model\nwithout -model: %s\n\n", c.name, c.name, name)
		list(c.Out, models)
		return Command{}, nil, nil
	}
	c.modelFlag = " -model " + name
	return models[i], args, nil
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" || arg == "--h" }

// modelName takes -model out of args: which flags there are depends on it.
func modelName(args []string) (name string, others []string, named bool) {
	for i, arg := range args {
		flag, value, given := strings.Cut(arg, "=")
		switch {
		case flag != "-model" && flag != "--model":
		case given:
			return value, slices.Delete(slices.Clone(args), i, i+1), true
		case i+1 < len(args):
			return args[i+1], slices.Delete(slices.Clone(args), i, i+2), true
		}
	}
	return "", args, false
}
