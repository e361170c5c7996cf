// Constructors have no names in stacks, and a class that is called is no frame.
class Base {
  constructor(wrong) {
    if (wrong) throw new Error('constructed');
  }
}

class Derived extends Base {
  constructor() {
    super(true);
  }
}

function make() {
  return __ITER === 0 ? new Derived() : Base();
}

export const options = { iterations: 2 };

export default function () {
  make();
}
