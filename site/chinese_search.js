// Splits what somebody types into the search of the Chinese site. Chinese has no spaces between words, so the words are
// those that the index knows: at each place the longest.
var splitQuery = (query) => {
  const isKnown = (word) => Object.hasOwn(Search._index.terms, word) || Object.hasOwn(Search._index.titleterms, word);
  const splitWord = (word) => {
    const words = [];
    for (let start = 0; start < word.length; ) {
      let end = word.length;
      while (end > start + 1 && !isKnown(word.slice(start, end))) end -= 1;
      words.push(word.slice(start, end));
      start = end;
    }
    // A single character is in no index; if nothing longer is known, the query stays whole, and nothing is found.
    const known = words.filter((part) => part.length > 1);
    return known.length ? known : [word];
  };
  const parts = query.match(/[\u3400-\u9fff]+|[\p{Letter}\p{Number}_]+/gu) ?? [];
  return parts.flatMap((part) => (/[\u3400-\u9fff]/.test(part) ? splitWord(part) : [part]));
};
