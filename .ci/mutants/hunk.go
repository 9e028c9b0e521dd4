package main

import (
	"fmt"
	"strings"
)

// hunk is one change of a patch. Its place is found by the lines that it replaces, with as many lines of context as it
// takes to make the place unique, so that code and comments around it may change.
type hunk struct {
	file          string
	old, new      []string // with the context, without the sign
	before, after int      // lines of context at the beginning and the end
}

// parse returns the hunks of a unified diff.
func parse(diff string) (hunks []*hunk, err error) {
	var h *hunk
	file := ""
	flush := func() {
		if h == nil {
			return
		}
		for h.before < min(len(h.old), len(h.new)) && h.old[h.before] == h.new[h.before] {
			h.before++
		}
		shorter := min(len(h.old), len(h.new)) - h.before
		for h.after < shorter && h.old[len(h.old)-1-h.after] == h.new[len(h.new)-1-h.after] {
			h.after++
		}
		hunks, h = append(hunks, h), nil
	}
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		path, isFile := strings.CutPrefix(line, "+++ b/")
		switch {
		case strings.HasPrefix(line, "--- a/"):
			flush()
		case isFile:
			file = strings.TrimSpace(path)
		case strings.HasPrefix(line, "@@ "):
			flush()
			h = &hunk{file: file}
		case h == nil || strings.HasPrefix(line, `\`):
		case line == "":
			h.old, h.new = append(h.old, ""), append(h.new, "")
		case line[0] == '-':
			h.old = append(h.old, line[1:])
		case line[0] == '+':
			h.new = append(h.new, line[1:])
		default:
			h.old, h.new = append(h.old, line[1:]), append(h.new, line[1:])
		}
	}
	flush()
	if len(hunks) == 0 || file == "" {
		return nil, fmt.Errorf("no hunk")
	}
	return hunks, nil
}

// apply returns text with the change of h. It tries less and less context, and takes the first that names one place.
func (h *hunk) apply(text string) (string, error) {
	lines := strings.Split(text, "\n")
	core := len(h.old) - h.before - h.after
	for sum := h.before + h.after; sum >= 0; sum-- {
		for before := range min(h.before, sum) + 1 {
			after := sum - before
			if after > h.after || core+sum == 0 {
				continue
			}
			old := h.old[h.before-before : len(h.old)-h.after+after]
			at := places(lines, old)
			if len(at) != 1 {
				continue
			}
			changed := append([]string{}, lines[:at[0]]...)
			changed = append(changed, h.new[h.before-before:len(h.new)-h.after+after]...)
			return strings.Join(append(changed, lines[at[0]+len(old):]...), "\n"), nil
		}
	}
	return "", fmt.Errorf("%s: the lines that it replaces are not there, or not only once:\n%s", h.file,
		strings.Join(h.old[h.before:len(h.old)-h.after], "\n"))
}

// places returns where some lines stand among others, whatever their indentation.
func places(lines, some []string) (at []int) {
	for i := range len(lines) - len(some) + 1 {
		same := true
		for j, line := range some {
			if strings.TrimSpace(line) != strings.TrimSpace(lines[i+j]) {
				same = false
				break
			}
		}
		if same {
			at = append(at, i)
		}
	}
	return at
}
