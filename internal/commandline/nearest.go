package commandline

// nearest is the name that is most like a given one, "" where none is like it.
func nearest(given string, names []string) (name string) {
	least := 1 + max(2, len(given)/4) // changes of a letter
	for _, candidate := range names {
		if n := changes(given, candidate); n < least {
			least, name = n, candidate
		}
	}
	return name
}

// changes is how many letters must be added, left out or replaced to make one text of another.
func changes(from, to string) int {
	row := make([]int, len(to)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := diagonal
			if from[i] != to[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(to)]
}

// didYouMean asks for a name, where there is one.
func didYouMean(prefix, name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + prefix + name + "?"
}
