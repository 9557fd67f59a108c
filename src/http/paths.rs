//! Which path of the API a request means: a tree of all of them, word by word.

/// A place in the tree of all paths.
#[derive(Default)]
pub struct Node {
    /// What may come next, word by word.
    words: Vec<(String, Node)>,
    /// What follows where any word may come next.
    any: Option<Box<Node>>,
    /// The path that ends here.
    route: Option<usize>,
}

impl Node {
    /// The tree of these paths, which are numbered from 0.
    pub fn of<'a>(paths: impl Iterator<Item = &'a [String]>) -> Self {
        let mut tree = Self::default();
        for (number, path) in paths.enumerate() {
            path.iter().fold(&mut tree, |node, segment| node.at(segment)).route = Some(number);
        }
        tree
    }

    /// The place that a word of a path leads to, made if there is none.
    fn at(&mut self, segment: &str) -> &mut Node {
        if segment.starts_with('{') {
            return self.any.get_or_insert_default();
        }
        let place = self.words.iter().position(|(word, _)| word == segment).unwrap_or_else(|| {
            self.words.push((segment.to_owned(), Node::default()));
            self.words.len() - 1
        });
        &mut self.words[place].1
    }

    /// The number of the path that a request's words fit; a word itself before any word.
    pub fn find<'a>(&self, mut segments: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
        let Some(segment) = segments.next() else { return self.route };
        let known = self.words.iter().find(|(word, _)| word == segment);
        known.and_then(|(_, node)| find(node, segments.clone())).or_else(|| {
            let any = self.any.as_deref().filter(|_| !segment.is_empty());
            any.and_then(|node| find(node, segments))
        })
    }
}

/// [`Node::find`], behind a pointer so that the type of the rest does not grow with each segment.
fn find<'a>(node: &Node, segments: impl Iterator<Item = &'a str> + Clone) -> Option<usize> {
    node.find(segments)
}
