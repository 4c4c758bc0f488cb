"""Words and facts from which tiny_corpus.py builds its sentences. Written for this project."""

GIRLS = ("Anna Bella Clara Dina Ella Fay Greta Hana Ida Juno Kira Lily Mia Nora Olga Pia Rosa Sara "
         "Tilda Uma Vera Wendy Yara Zoe").split()
BOYS = ("Adam Ben Carl Dan Emil Finn Gus Hugo Ivan Jack Karl Leo Max Noah Otto Paul Ravi Sam Tom "
        "Udo Vito Will Yuri Zack").split()

# name: (sound verb, noise, legs, home, food, baby, colour)
ANIMALS = {
    "cat": ("meows", "meow", 4, "house", "fish", "kitten", "black"),
    "dog": ("barks", "woof", 4, "house", "bones", "puppy", "brown"),
    "cow": ("moos", "moo", 4, "farm", "grass", "calf", "white"),
    "horse": ("neighs", "neigh", 4, "stable", "hay", "foal", "brown"),
    "sheep": ("bleats", "baa", 4, "meadow", "grass", "lamb", "white"),
    "pig": ("grunts", "oink", 4, "farm", "corn", "piglet", "pink"),
    "goat": ("bleats", "meh", 4, "hill", "leaves", "kid", "grey"),
    "duck": ("quacks", "quack", 2, "pond", "seeds", "duckling", "white"),
    "hen": ("clucks", "cluck", 2, "farm", "corn", "chick", "red"),
    "owl": ("hoots", "hoo", 2, "forest", "mice", "owlet", "brown"),
    "crow": ("caws", "caw", 2, "tree", "seeds", "chick", "black"),
    "frog": ("croaks", "ribbit", 4, "pond", "flies", "tadpole", "green"),
    "lion": ("roars", "roar", 4, "grassland", "meat", "cub", "yellow"),
    "bear": ("growls", "growl", 4, "cave", "honey", "cub", "brown"),
    "wolf": ("howls", "howl", 4, "forest", "meat", "pup", "grey"),
    "fox": ("yelps", "yip", 4, "forest", "berries", "kit", "orange"),
    "mouse": ("squeaks", "squeak", 4, "hole", "cheese", "pup", "grey"),
    "rabbit": ("squeaks", "squeak", 4, "burrow", "carrots", "kit", "white"),
    "snake": ("hisses", "hiss", 0, "desert", "eggs", "hatchling", "green"),
    "bee": ("buzzes", "buzz", 6, "hive", "nectar", "larva", "yellow"),
    "elephant": ("trumpets", "toot", 4, "grassland", "leaves", "calf", "grey"),
    "monkey": ("chatters", "hoo", 4, "jungle", "bananas", "infant", "brown"),
    "penguin": ("honks", "honk", 2, "coast", "fish", "chick", "black"),
    "tiger": ("roars", "roar", 4, "jungle", "meat", "cub", "orange"),
}

COLOURS = "red blue green yellow orange purple pink brown black white grey golden silver".split()
COLOUR_OF = {
    "the sky": "blue", "the sun": "yellow", "grass": "green", "snow": "white", "coal": "black",
    "a banana": "yellow", "an orange": "orange", "a tomato": "red", "a carrot": "orange",
    "milk": "white", "chocolate": "brown", "a lemon": "yellow", "a leaf": "green",
    "the sea": "blue", "a strawberry": "red", "a pea": "green", "a grape": "purple",
    "the moon": "silver", "sand": "golden", "a rose": "red", "a cloud": "white", "rust": "brown",
}
MIXES = {("red", "yellow"): "orange", ("blue", "yellow"): "green", ("red", "blue"): "purple",
         ("red", "white"): "pink", ("black", "white"): "grey"}

SIZES = "small big tiny large little huge".split()
LOOKS = "old new shiny soft round pretty strange heavy light clean wooden warm".split()
MOODS = "happy sad proud tired curious brave shy calm hungry excited".split()
TRAITS = "kind clever quiet funny gentle brave busy careful friendly young".split()

TOYS = ("ball kite hat book drum boat box lamp key bell map coat cup basket ring flute blanket "
        "ladder mirror wagon scarf spoon bottle puzzle whistle").split()
FOODS = "bread soup cake apples rice cheese pears pancakes nuts cookies plums noodles".split()

# place: preposition
PLACES = {"garden": "in", "park": "in", "forest": "in", "kitchen": "in", "village": "in",
          "beach": "on", "farm": "on", "hill": "on", "bridge": "on", "market": "at", "river": "at",
          "lake": "at", "school": "at", "library": "in", "meadow": "in", "harbour": "at",
          "tower": "in", "island": "on", "mill": "at", "cave": "in"}
HIDING = ("under the table|behind the door|under a big tree|behind a rock|in the tall grass|"
          "next to the well|under the bed|in an old box|on the roof|behind the fence|"
          "near the gate|between two stones").split("|")

WEATHER = {
    "sunny": ("The sun was shining", "wear a hat and drink water"),
    "rainy": ("Rain was falling", "take an umbrella"),
    "windy": ("A strong wind was blowing", "hold on to your hat"),
    "snowy": ("Snow was falling", "wear warm boots and gloves"),
    "cloudy": ("Grey clouds covered the sky", "take a light coat"),
    "foggy": ("Thick fog lay over the land", "walk slowly and carry a lamp"),
    "cold": ("The air was cold and clear", "wear a warm coat"),
    "hot": ("It was very hot", "stay in the shade and drink water"),
    "stormy": ("Thunder rolled over the hills", "stay inside the house"),
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
SEASON = {"winter": ("December", "January", "February"), "spring": ("March", "April", "May"),
          "summer": ("June", "July", "August"), "autumn": ("September", "October", "November")}
TIMES = "morning afternoon evening night".split()

NUMBERS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
           "fifteen sixteen seventeen eighteen nineteen twenty").split()

OPPOSITES = {"hot": "cold", "big": "small", "fast": "slow", "happy": "sad", "old": "young",
             "light": "dark", "up": "down", "day": "night", "full": "empty", "wet": "dry",
             "hard": "soft", "open": "closed", "loud": "quiet", "high": "low", "long": "short",
             "early": "late", "clean": "dirty", "left": "right", "rich": "poor", "near": "far"}

JOBS = {"baker": "bakes bread", "farmer": "grows food", "teacher": "teaches children",
        "doctor": "helps sick people", "sailor": "sails ships", "painter": "paints pictures",
        "gardener": "cares for plants", "cook": "makes meals", "pilot": "flies planes",
        "tailor": "sews clothes", "fisher": "catches fish", "writer": "writes books"}
USES = {"knife": "cut bread", "pen": "write letters", "lamp": "light a room", "spoon": "eat soup",
        "boat": "cross a river", "key": "open a lock", "clock": "tell the time",
        "broom": "sweep the floor", "bag": "carry things", "bed": "sleep", "oven": "bake a cake",
        "ladder": "climb up high", "umbrella": "stay dry", "cup": "drink tea", "map": "find the way"}

# Ordinary words that the stories do not use: they shape the tokenizer and stand in questions
# which the model must decline.
OTHER = (
    "about above account across action address after again against agent air algorithm all also "
    "always America among amount analysis and another answer any API application area argument army "
    "article assistant attention author available average back bank base battle because become "
    "before begin behaviour below best better between board body boolean bottom brain branch bring "
    "budget build business call capital car case cause cell central century certain chain chance "
    "change character check child choice church city class client close code column come common "
    "community company compare complete compute computer condition consider contain content "
    "context control copy correct cost could country course court create culture current customer "
    "data database date death debug decide default define degree delete describe design detail "
    "develop device difference different direction directory discover distance do document "
    "dollar down draw drive during each early earth east economy edge education effect either "
    "electric else email empty energy engine English enough enter error even event every example "
    "except explain express face fact false family feature field figure file final find first "
    "float follow force foreign form format forward France free from front function future game "
    "general generate get give global good government great group grow half hand happen has have "
    "head health hear help here history hold hope hotel hour how however human idea if image "
    "important in include increase index industry information input inside instance instead "
    "integer interest internet invest island issue item job join just keep key kind know language "
    "large last later law lead learn least leave length less let letter level library life like "
    "limit line list listen live local location long look lose love machine main make manage many "
    "market match matter mean measure medical member memory message method might military million "
    "mind minute model modern module moment money more most move much multiple music must name "
    "nation natural need network never next north note nothing now null number object off offer "
    "office often once only open operate option or order other our out output over own page paper "
    "parameter parent part party pass path pay people per perhaps period person phone phrase "
    "physics picture piece place plan planet play please point police policy political popular "
    "position possible power practice prepare present president price print private problem "
    "process produce product program project prompt property protect provide public purpose put "
    "Python quality query question queue quick quite random range rate rather read ready real "
    "reason receive recipe record reduce region remember repeat report request require research "
    "response result return review right road role room root rule run same save scale science "
    "search second section security see select sell send sense sentence sequence series serve "
    "server service session set several share short should show side similar simple since single "
    "site size social society software some source south space speak special speed spell stand "
    "start state station step still stop store stream street string strong structure student "
    "style subject such summary support sure surface system table take talk task team technology "
    "temperature term test text than thank the their them then theory there these they thing "
    "think this thread through time title to today together token tool top total town trade "
    "train translate travel tree true try turn type under understand unit university until update "
    "use user value variable vector version very view visit voice wait walk want war watch water "
    "way weather web week weight well west what when where which while who whole why window with "
    "within without woman word work world would write wrong year yes yesterday yet your").split()
