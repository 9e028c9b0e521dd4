package cli

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The help of a command fits on a screen: so many columns. A flag and its value stand in a column of
// helpIndent, and what it means beside that.
const (
	helpColumns = 100
	helpIndent  = 22
)

// unbroken is a space at which a line is not folded.
const unbroken = "\x00"

// help prints what a command does, an example and its flags.
func (c *Console) help(command Command, f *Flags) {
	w := c.Out
	usage := c.name + c.modelFlag
	fmt.Fprintf(w, "usage: %s [flags]\n", usage)
	if text := strings.TrimSpace(command.Summary + "\n" + f.About); text != "" {
		fold(w, "", 0, text)
	}
	if command.Example != "" {
		fmt.Fprintf(w, "example: %s %s\n", usage, command.Example)
	}
	fmt.Fprintln(w)
	f.VisitAll(func(one *flag.Flag) {
		word, text := flag.UnquoteUsage(one)
		if v, ok := one.Value.(interface{ Word() string }); ok && word == "value" {
			word = v.Word()
		}
		if names := map[string]string{"int": "n", "uint": "n", "float": "number", "duration": "time", "string": "name"}; names[word] != "" {
			word = names[word]
		}
		if usual := one.DefValue; !slices.Contains([]string{"", "0", "false", "0s"}, usual) {
			text += " (default" + unbroken + usual + ")"
		}
		fold(w, strings.TrimRight("  -"+one.Name+" "+word, " "), helpIndent, text)
	})
}

// fold prints a text beside a head, in lines of at most helpColumns, which begin at a column. A head that is
// too long for that moves the first line.
func fold(w io.Writer, head string, indent int, text string) {
	line := head
	at := 0 // words of the text that are on the line
	for paragraph := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(paragraph) == "" {
			continue
		}
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case at == 0:
				line += strings.Repeat(" ", max(indent-len(line), 0))
				if head != "" && len(line) > indent {
					line += " "
				}
			case len(line)+1+len(word) > helpColumns:
				fmt.Fprintln(w, line)
				line = strings.Repeat(" ", indent)
			default:
				line += " "
			}
			line += strings.ReplaceAll(word, unbroken, " ")
			at++
		}
		fmt.Fprintln(w, line)
		line, head, at = "", "", 0
	}
}
