package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Save writes the rows of which all rounds are whole as JSON, which [Read] reads. Without
// rows it writes nothing.
func (r *Report) Save(w io.Writer) error {
	whole := &Report{}
	for _, row := range r.Rows {
		if row.rounds() > 0 && !row.Cut {
			whole.Rows = append(whole.Rows, row)
		}
	}
	if len(whole.Rows) == 0 {
		return nil
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(whole)
}

// Replace puts the rows of newer into r: in the place of the row of that name if there is
// one, and otherwise where it belongs in the order of [Rows]. A row that was cut replaces
// none.
func (r *Report) Replace(newer *Report) {
	for _, row := range newer.Rows {
		if row.rounds() == 0 || row.Cut {
			continue
		}
		r.Rows = slices.DeleteFunc(r.Rows, func(old *Result) bool { return old.Name == row.Name })
		r.Rows = append(r.Rows, row)
	}
	usual, long := Rows()
	order := slices.Concat(usual, long)
	slices.SortStableFunc(r.Rows, func(a, b *Result) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
}

// ReadFile is [Read] for a file, which the error names.
func ReadFile(name string) (*Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read peers %s: %w", name, errors.Unwrap(err))
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read peers %s: %w", name, err)
	}
	return r, nil
}

// Read reads what [Report.Save] has written. An error names the row that is wrong.
func Read(from io.Reader) (*Report, error) {
	r := &Report{}
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, err
	}
	if len(r.Rows) == 0 {
		return nil, errors.New("there are no rows")
	}
	known := rowsOf(fullSizes)
	for i, row := range r.Rows {
		if row == nil {
			return nil, fmt.Errorf("row %d is null", i)
		}
		now, err := findRow(known, row.Name)
		if err != nil {
			return nil, err
		}
		if err := row.check(now); err != nil {
			return nil, fmt.Errorf("row %s: %w", row.Name, err)
		}
		row.Columns = now.columns
	}
	return r, nil
}

// check returns an error unless the columns are those of the row as it is now, and each peer
// is known and has a figure for each column and each round.
func (r *Result) check(now *row) error {
	if !slices.EqualFunc(r.Columns, now.columns, func(a, b Column) bool { return a.Name == b.Name }) {
		return errors.New("its columns are no longer measured: measure it again")
	}
	if len(r.Peers) == 0 {
		return errors.New("there are no peers")
	}
	for i, p := range r.Peers {
		if p == nil {
			return fmt.Errorf("peer %d is null", i)
		}
		if _, err := findPeer(p.Name); err != nil {
			return err
		}
		if len(p.Figures) != len(now.columns) {
			return fmt.Errorf("%s has %d figures for %d columns", p.Name, len(p.Figures), len(now.columns))
		}
		for _, s := range p.Figures {
			if len(s) == 0 || len(s) != r.rounds() {
				return fmt.Errorf("%s has figures of %d instead of %d rounds", p.Name, len(s), r.rounds())
			}
			if now.columns[0].Ratio && slices.Contains(s, never) {
				return fmt.Errorf("%s has no figure in one of the rounds", p.Name)
			}
		}
	}
	if now.columns[0].Ratio && r.peer(all[0].name) == nil {
		return fmt.Errorf("%s, the base of the ratios, is missing", all[0].name)
	}
	return nil
}

// MarshalJSON writes null for what was waited for in vain, because JSON has no infinity.
func (s Spread) MarshalJSON() ([]byte, error) {
	figures := make([]*float64, len(s))
	for i, v := range s {
		if !math.IsInf(v, 1) {
			figures[i] = &v
		}
	}
	return json.Marshal(figures)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (s *Spread) UnmarshalJSON(text []byte) error {
	var figures []*float64
	if err := json.Unmarshal(text, &figures); err != nil {
		return err
	}
	*s = nil
	for _, v := range figures {
		if v == nil {
			*s = append(*s, never)
		} else {
			*s = append(*s, *v)
		}
	}
	return nil
}
